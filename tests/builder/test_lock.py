"""One build at a time, whatever becomes of the one who started it."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tasks.builder import lock as lock_module
from tasks.builder.lock import BuildLock, holder
from tasks.errors import UserError

PROJECT = Path(__file__).resolve().parent.parent.parent

# Takes the lock in another process, starts a build under it as the project does, and waits to be killed.
_HOLDER = """
import os, sys, time
from pathlib import Path
from tasks.builder.lock import BuildLock
from tasks.builder.run import run_build
state = Path(sys.argv[1])
lock = BuildLock(state)
lock.acquire(wait=False)
print("held", flush=True)
if sys.argv[2] == "build":
    run_build(["sh", "-c", sys.argv[3]], state, dict(os.environ), state / "log", lambda line: None,
              lock.descriptor(), lock.runs)
elif sys.argv[2] == "release":
    time.sleep(float(sys.argv[3]))
    lock.release()
time.sleep(60)
"""


class Holder:
    """Another process that holds the lock."""

    def __init__(self, state: Path, what: str = "hold", argument: str = "") -> None:
        self.state = state
        self.process = subprocess.Popen([sys.executable, "-c", _HOLDER, str(state), what, argument],
                                        stdout=subprocess.PIPE, env={**os.environ, "PYTHONPATH": str(PROJECT)})
        assert self.process.stdout is not None
        assert self.process.stdout.readline() == b"held\n"

    def child(self) -> int:
        """The process that the build wrote down."""
        path = self.state / "child"
        deadline = time.monotonic() + 10
        while not path.exists() or not path.read_text().endswith("\n"):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return int(path.read_text())

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


@pytest.fixture
def state(tmp_path: Path) -> Path:
    return tmp_path / ".fmha"


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock_module, "_POLL_S", 0.02)


def taken(state: Path) -> str:
    """What somebody who does not wait is told."""
    with pytest.raises(UserError) as told:
        BuildLock(state).acquire(wait=False)
    assert told.value.mend == "wait for it: doit TASK wait=1"
    return told.value.cause


def free(state: Path) -> bool:
    lock = BuildLock(state)
    lock.acquire(wait=False)
    lock.release()
    return True


def test_a_free_lock_is_taken_and_given_back(state: Path) -> None:
    lock = BuildLock(state)
    assert not lock.held
    lock.acquire(wait=False)
    assert lock.held
    lock.release()
    assert not lock.held
    assert free(state)


def test_taking_it_twice_is_taking_it_once(state: Path) -> None:
    lock = BuildLock(state)
    lock.acquire(wait=False)
    lock.acquire(wait=False)
    lock.release()
    assert free(state)


def test_giving_back_what_is_not_held_does_nothing(state: Path) -> None:
    BuildLock(state).release()
    assert not state.exists()


def test_a_taken_lock_names_its_holder(state: Path) -> None:
    other = Holder(state)
    told = taken(state)
    other.kill()
    assert f"process {other.process.pid}" in told
    assert time.strftime("%H:") in told


def test_waiting_goes_on_when_the_holder_gives_it_back(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = Holder(state, "release", "0.3")
    lock = BuildLock(state)
    lock.acquire(wait=True)
    assert lock.held
    lock.release()
    other.kill()
    assert capsys.readouterr().out.count("waiting: ") == 1


def test_a_killed_holder_without_a_build_holds_nothing(state: Path) -> None:
    Holder(state).kill()
    assert free(state)


def test_a_build_that_survives_its_killed_holder_keeps_the_lock(state: Path) -> None:
    other = Holder(state, "build", "echo $$ > child; exec sleep 60")
    child = other.child()
    other.kill()
    assert "is being built" in taken(state)
    os.kill(child, signal.SIGKILL)
    _until_free(state)


def test_a_surviving_compiler_of_a_killed_build_script_keeps_the_lock(state: Path) -> None:
    # Python's subprocess closes what it inherited: only the session tells.
    script = """exec python3 -c '
import subprocess
subprocess.Popen(["sh", "-c", "echo $$ > child; exec sleep 60"])
'"""
    other = Holder(state, "build", script)
    child = other.child()
    other.kill()
    deadline = time.monotonic() + 5
    # The script itself, which does have the lock open, ends a moment later.
    while "whose doit is gone" not in taken(state):
        assert time.monotonic() < deadline
    assert str(child) in taken(state)
    os.kill(child, signal.SIGKILL)
    _until_free(state)


def test_a_zombie_keeps_nothing(state: Path) -> None:
    zombie = subprocess.Popen(["true"], start_new_session=True)
    deadline = time.monotonic() + 5
    while "Z" not in Path(f"/proc/{zombie.pid}/stat").read_text().rpartition(")")[2].split()[0]:
        assert time.monotonic() < deadline
    _write(state, session=zombie.pid)
    assert free(state)
    zombie.wait()


def test_a_living_session_of_an_unfinished_build_keeps_the_lock(state: Path) -> None:
    _write(state, session=os.getsid(0))
    assert "whose doit is gone" in taken(state)


def test_a_session_of_a_finished_build_keeps_nothing(state: Path) -> None:
    _write(state, session=os.getsid(0), ended=True)
    assert free(state)


def test_a_session_from_before_a_reboot_keeps_nothing(state: Path) -> None:
    _write(state, session=os.getsid(0), boot="another")
    assert free(state)


@pytest.mark.parametrize("text", ["", "garbage", "[]", "null", '{"session": "x"}', '{"since": "x"}', "\ud800"])
def test_an_unreadable_note_of_the_holder_keeps_nothing(state: Path, text: str) -> None:
    state.mkdir()
    (state / "lock.json").write_bytes(text.encode(errors="surrogatepass"))
    assert free(state)


def test_a_holder_without_a_note_is_told_as_unknown(state: Path) -> None:
    other = Holder(state)
    (state / "lock.json").unlink()
    assert "unknown" in taken(state)
    other.kill()


def test_the_note_says_who_and_since_when(state: Path) -> None:
    lock = BuildLock(state)
    before = time.time()
    lock.acquire(wait=False)
    lock.runs(4711)
    data = holder(state)
    lock.release()
    assert (data["pid"], data["session"], data["ended"]) == (os.getpid(), 4711, False)
    assert before <= float(str(data["since"])) <= time.time()
    assert holder(state)["ended"] is True


def test_there_is_a_descriptor_only_while_it_is_held(state: Path) -> None:
    lock = BuildLock(state)
    assert lock.descriptor() is None
    lock.acquire(wait=False)
    descriptor = lock.descriptor()
    assert descriptor is not None
    assert os.path.realpath(f"/proc/self/fd/{descriptor}") == os.path.realpath(state / "lock")
    lock.release()
    assert lock.descriptor() is None


def test_a_build_directory_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be made") as told:
        BuildLock(tmp_path / "none" / ".fmha").acquire(wait=False)
    assert "writable" in str(told.value)


def test_of_many_at_once_each_has_it_alone(state: Path) -> None:
    code = """
import os, sys
from pathlib import Path
from tasks.builder import lock
lock._POLL_S = 0.001
state = Path(sys.argv[1])
for _ in range(15):
    mine = lock.BuildLock(state)
    mine.acquire(wait=True)
    os.close(os.open(state / "inside", os.O_CREAT | os.O_EXCL))
    os.unlink(state / "inside")
    mine.release()
"""
    processes = [subprocess.Popen([sys.executable, "-c", code, str(state)], stdout=subprocess.DEVNULL,
                                  env={**os.environ, "PYTHONPATH": str(PROJECT)}) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]


def _write(state: Path, session: int, ended: bool = False, boot: str | None = None) -> None:
    state.mkdir()
    note = {"pid": 1, "since": 1.0, "session": session, "ended": ended,
            "boot": boot or Path("/proc/sys/kernel/random/boot_id").read_text().strip()}
    (state / "lock.json").write_text(json.dumps(note))


def _until_free(state: Path) -> None:
    """The kernel takes a moment to close a killed process's files."""
    lock = BuildLock(state)
    deadline = time.monotonic() + 5
    while not lock.held:
        assert time.monotonic() < deadline
        try:
            lock.acquire(wait=False)
        except UserError:
            time.sleep(0.02)
    lock.release()


def test_whoever_takes_it_knows_whether_another_had_it_since_a_look(state: Path) -> None:
    lock = BuildLock(state)
    nobody = lock.note()
    lock.acquire(wait=False)
    assert nobody is None
    assert lock.found is None
    lock.release()
    looked = lock.note()
    lock.acquire(wait=False)
    assert lock.found == looked, "this one's own look, and nobody since"
    lock.release()
    looked = lock.note()
    time.sleep(0.02)  # a build takes longer than the clock's tick
    assert free(state)
    lock.acquire(wait=False)
    assert lock.found != looked
    lock.release()


def test_a_folder_without_locks_is_told(state: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(lock_module.fcntl, "flock", none_left)
    lock = BuildLock(state)
    descriptors = os.listdir("/proc/self/fd")
    with pytest.raises(UserError, match="cannot be locked: No locks available"):
        lock.acquire(wait=False)
    assert not lock.held
    assert os.listdir("/proc/self/fd") == descriptors
