"""Identities, digests, and the clock tick in which an identity says nothing."""

from __future__ import annotations

import hashlib
import os
import time
from pathlib import Path

import pytest

from tasks.evidence import snapshot
from tasks.evidence.snapshot import Identity, Observer, clock_ns, identity_of, moment_of, settle


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "kernel_forward.h"
    path.write_text("content")
    return path


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def identity(path: Path) -> Identity:
    found = identity_of(path)
    assert found is not None
    return found


def test_an_identity_is_what_stat_says(file: Path) -> None:
    stat = file.stat()
    assert identity(file) == (stat.st_dev, stat.st_ino, stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns)


def test_a_missing_file_has_no_identity(tmp_path: Path) -> None:
    assert identity_of(tmp_path / "none") is None
    assert Observer().digest(str(tmp_path / "none")) is None


def test_a_link_has_the_identity_of_what_it_leads_to(file: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(file)
    assert identity_of(tmp_path / "link") == identity_of(file)


def test_setting_the_mtime_back_does_not_bring_an_identity_back(file: Path) -> None:
    before = identity(file)
    time.sleep(0.03)
    file.write_text("CONTENT")
    os.utime(file, ns=(before.mtime_ns, before.mtime_ns))
    after = identity(file)
    assert (after.size, after.mtime_ns) == (before.size, before.mtime_ns)
    assert after != before


def test_replacing_a_file_moves_its_identity(file: Path, tmp_path: Path) -> None:
    before = identity(file)
    (tmp_path / "new").write_text("content")
    (tmp_path / "new").replace(file)
    assert identity(file) != before


def test_a_digest_is_sha_256_of_the_content(file: Path) -> None:
    assert Observer().digest(str(file)) == digest("content")


def test_a_large_file_is_digested_whole(tmp_path: Path) -> None:
    path = tmp_path / "large"
    path.write_bytes(b"x" * (3 << 20) + b"y")
    assert Observer().digest(str(path)) == hashlib.sha256(path.read_bytes()).hexdigest()


def test_an_observer_sees_one_moment(file: Path) -> None:
    observer = Observer()
    before = observer.identity(str(file))
    assert observer.digest(str(file)) == digest("content")
    file.write_text("later")
    assert observer.identity(str(file)) == before
    assert observer.digest(str(file)) == digest("content")


def test_a_file_that_did_not_move_is_not_read(file: Path) -> None:
    observer = Observer({str(file): (identity(file), "what a receipt says")})
    assert observer.digest(str(file)) == "what a receipt says"


def test_a_file_that_moved_is_read(file: Path) -> None:
    observer = Observer({str(file): (identity(file)._replace(ctime_ns=1), "what a receipt says")})
    assert observer.digest(str(file)) == digest("content")


def test_what_was_learnt_first_stays(file: Path) -> None:
    observer = Observer()
    observer.learn(str(file), identity(file), "first")
    observer.learn(str(file), identity(file), "second")
    assert observer.digest(str(file)) == "first"


def test_the_same_content_under_another_identity_is_the_same(file: Path) -> None:
    old = identity(file)._replace(inode=1, ctime_ns=1, mtime_ns=1)
    assert Observer().is_digest(str(file), old, digest("content"))


def test_other_content_under_another_identity_is_not_the_same(file: Path) -> None:
    old = identity(file)._replace(ctime_ns=1)
    assert not Observer().is_digest(str(file), old, digest("CONTENT"))


def test_another_size_is_never_the_same(file: Path) -> None:
    old = identity(file)._replace(size=1)
    assert not Observer().is_digest(str(file), old, digest("content"))


def test_a_missing_file_is_never_the_same(file: Path) -> None:
    old = identity(file)
    file.unlink()
    assert not Observer().is_digest(str(file), old, digest("content"))


def test_a_folder_has_no_digest(tmp_path: Path) -> None:
    assert Observer().digest(str(tmp_path)) is None


def test_settling_waits_until_a_clock_tick_after_the_last_write(file: Path) -> None:
    file.write_text("just now")
    settle([str(file)])
    assert time.time_ns() - identity(file).ctime_ns >= 20_000_000


def test_after_settling_a_write_moves_the_identity(file: Path) -> None:
    for number in range(20):
        file.write_text(f"{number:8}")
        settle([str(file)])
        before = identity(file)
        file.write_text(f"{number + 1:8}")
        assert identity(file) != before


def test_settling_does_not_wait_for_quiet_files(file: Path) -> None:
    time.sleep(0.03)
    started = time.monotonic()
    settle([str(file), str(file.parent / "none")])
    settle([])
    assert time.monotonic() - started < 0.02


def test_settling_does_not_wait_for_the_future(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "identity_of", lambda _: Identity(1, 1, 1, 1, time.time_ns() + 10**12))
    started = time.monotonic()
    settle([str(file)])
    assert time.monotonic() - started < 1


def test_a_file_from_the_future_does_not_keep_the_others_from_being_waited_for(
        file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    future = file.with_name("future.h")

    def as_seen(path: str) -> Identity:
        ahead = 10**12 if path == str(future) else 0
        return Identity(1, 1, 1, 1, written + ahead)

    monkeypatch.setattr(snapshot, "identity_of", as_seen)
    written = time.time_ns()
    settle([str(file), str(future)])
    assert time.time_ns() - written >= 20_000_000


def test_the_file_systems_clock_is_that_of_a_file_written_now(tmp_path: Path) -> None:
    before = clock_ns(tmp_path)
    (tmp_path / "file").write_text("")
    assert before <= (tmp_path / "file").stat().st_mtime_ns
    assert clock_ns(tmp_path) >= before


def test_the_file_systems_clock_can_be_asked_again(tmp_path: Path) -> None:
    clock_ns(tmp_path)
    os.utime(tmp_path / "clock", (1, 1))
    assert clock_ns(tmp_path) > 10**18


def test_what_the_same_moment_has_asked_for_is_not_asked_again(tmp_path: Path) -> None:
    file = tmp_path / "a.h"
    file.write_text("1")
    seen = identity(file)
    file.write_text("22")
    other = tmp_path / "b.h"
    other.write_text("3")
    observer = Observer(seen={str(file): list(seen)})
    assert observer.identity(str(file)) == seen
    assert observer.identity(str(other)) == identity(other), "what it has not asked for is looked at"


def test_one_moved_file_among_many_is_noticed(tmp_path: Path) -> None:
    files = [tmp_path / f"{number}.h" for number in range(3)]
    for file in files:
        file.write_text("1")
    known = moment_of({str(file): identity(file) for file in files})
    paths = frozenset(map(str, files))
    assert Observer().moment(paths) == known
    assert Observer().moment(paths | {str(tmp_path / "4.h")}) != known, "a missing file is one too"
    assert Observer().moment(paths - {str(files[2])}) != known
    files[1].write_text("2")
    assert Observer().moment(paths) != known
    files[1].unlink()
    assert Observer().moment(paths) != known


@pytest.mark.parametrize("field", range(5))
def test_every_part_of_an_identity_counts_in_a_moment(tmp_path: Path, field: int) -> None:
    file = tmp_path / "a.h"
    file.write_text("1")
    was = list(identity(file))
    was[field] += 1
    assert Observer().moment(frozenset([str(file)])) != moment_of({str(file): Identity(*was)})
