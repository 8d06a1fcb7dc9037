"""Which build folders may be cleaned: one reason to keep a folder at a time."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tasks.box.judge import ACTIVE, RECENT, STALE, UNCLEAR
from tasks.box.mounts import Mount, names_of, parse_mounts, read_mounts
from tasks.box.processes import Processes, see_processes
from tasks.box.survey import survey
from tests.box.world import DAY, NOBODY, World, age_all, as_nobody, bind, needs_root, tmpfs, unused


@contextmanager
def process(words: list[str], **options: object) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has said that it is ready."""
    child = subprocess.Popen(words, stdout=subprocess.PIPE, **options)  # type: ignore[call-overload]
    try:
        assert child.stdout.readline() == b"ready\n"
        yield child
    finally:
        child.kill()
        child.wait()


def python(code: str) -> list[str]:
    return [sys.executable, "-c", f"import os, sys, time; {code}; print('ready', flush=True); time.sleep(60)"]


def test_an_old_folder_of_this_checkout_and_user_is_stale_and_regenerable(world: World) -> None:
    folder = world.judged(world.add("Linux/Debug", 45))
    assert (folder.verdict, folder.reasons) == (STALE, ())
    assert folder.age_s is not None
    assert 44.9 * DAY < folder.age_s < 45.1 * DAY
    assert (folder.configuration, folder.generator) == ("Debug", "Ninja")


def test_a_younger_one_is_yours_and_recent(world: World) -> None:
    assert world.judged(world.add("Linux/Debug", 29)).verdict == RECENT


def test_one_new_object_keeps_a_folder(world: World) -> None:
    folder = world.add("Linux/Debug", 45)
    (folder / "CMakeFiles/provider.dir/new.cu.o").touch()
    assert world.judged(folder).verdict == RECENT


def test_what_this_project_and_editors_write_makes_a_folder_no_younger(world: World) -> None:
    folder = world.add("Linux/Debug", 45)
    (folder / ".fmha").mkdir()
    (folder / ".fmha/report.json").touch()
    (folder / ".vscode").mkdir()
    (folder / ".vscode/settings.json").touch()
    judged = world.judged(folder)
    assert judged.verdict == STALE
    assert judged.tally.newest_path.endswith((".o", ".so", ".txt"))


def test_a_new_file_that_no_build_writes_keeps_a_folder_and_is_named(world: World) -> None:
    folder = world.add("Linux/Debug", 45)
    (folder / "results.txt").touch()
    judged = world.judged(folder)
    assert judged.verdict == UNCLEAR
    assert f"{folder}/results.txt" in judged.reasons[0]
    assert judged.age_s is not None
    assert judged.age_s > 44 * DAY


@pytest.mark.parametrize("name", ["notes.md", "fix.patch", "trace.nsys-rep", "kernel.h.orig", "todo~", "src/.git"])
def test_an_old_file_that_only_a_person_makes_keeps_a_folder(world: World, name: str) -> None:
    folder = world.add("Linux/Debug", 45)
    (folder / name).parent.mkdir(exist_ok=True)
    (folder / name).touch()
    age_all(folder, 45)
    judged = world.judged(folder)
    assert judged.verdict == UNCLEAR
    assert str(folder / name) in judged.reasons[0]


def test_third_party_sources_under_deps_are_no_reason_to_keep_a_folder(world: World) -> None:
    folder = world.add("Linux/Debug", 45)
    (folder / "_deps/cutlass-src/.git").mkdir(parents=True)
    (folder / "_deps/cutlass-src/README.md").touch()
    (folder / "_deps/cutlass-subbuild").mkdir()
    (folder / "_deps/cutlass-subbuild/CMakeCache.txt").write_text("CMAKE_HOME_DIRECTORY:INTERNAL=/x\n")
    age_all(folder, 45)
    assert world.judged(folder).verdict == STALE


def test_the_configured_build_directory_is_never_stale(world: World) -> None:
    age_all(world.configured, 400)
    judged = world.judged(world.configured)
    assert (judged.verdict, judged.reasons) == (ACTIVE, ("the configured build directory",))


def test_a_folder_that_holds_the_configured_build_directory_is_kept(world: World) -> None:
    folder = world.add("Linux/Outer", 45)
    box = survey(world.root, folder / "inner/Release", 30, see=unused)
    assert "configured build directory lies in it" in next(o for o in box.folders if o.path == folder).reasons[0]


def test_a_folder_that_holds_another_build_folder_of_this_checkout_is_kept(world: World) -> None:
    folder = world.add("Linux/Outer", 45)
    world.add("Linux/Outer/inner", 45)
    age_all(folder, 45)
    assert "another build folder" in world.judged(folder).reasons[0]


# -- row 37: a link, another mount, someone else's, in use, no cache of this checkout -----------------------


def test_37_a_link_to_a_build_folder_is_unclear_and_its_target_is_not_measured(world: World, tmp_path: Path) -> None:
    elsewhere = World(tmp_path / "other").add("Linux/Debug", 45)
    link = world.root / "build/Linux/Debug"
    link.symlink_to(elsewhere)
    judged = world.judged(link)
    assert judged.verdict == UNCLEAR
    assert f"a link, to {elsewhere}" in judged.reasons
    assert judged.tally.files == 0


def test_37_nothing_below_a_build_root_that_is_a_link_is_offered(world: World, tmp_path: Path) -> None:
    world.add("Linux/Debug", 45)
    os.rename(world.root / "build", tmp_path / "scratch")
    (world.root / "build").symlink_to(tmp_path / "scratch")
    assert world.look().stale == ()


def test_37_a_link_that_leads_out_of_a_folder_keeps_it_and_one_that_stays_does_not(world: World) -> None:
    folder = world.add("Linux/Debug", 45)
    (folder / "libonnxruntime.so").symlink_to("libonnxruntime_providers_cuda.so")
    (folder / "absolute").symlink_to(folder / "CMakeFiles")
    assert world.judged(folder).verdict == STALE
    (folder / "CMakeFiles/models").symlink_to(world.root / "cmake")
    judged = world.judged(folder)
    assert judged.verdict == UNCLEAR
    assert "is a link that leads out" in judged.reasons[0]


@needs_root
def test_37_a_folder_on_another_mount_is_unclear(world: World) -> None:
    folder = world.root / "build/Linux/Debug"
    with tmpfs(folder):
        (folder / "CMakeFiles").mkdir()
        (folder / "CMakeCache.txt").write_text((world.configured / "CMakeCache.txt").read_text().replace(
            "Linux/Release", "Linux/Debug"))
        age_all(folder, 45)
        assert "on another mount" in world.judged(folder).reasons[0]


@needs_root
def test_37_a_mount_inside_keeps_a_folder_even_one_of_the_same_file_system(world: World, tmp_path: Path) -> None:
    folder = world.add("Linux/Debug", 45)
    treasure = tmp_path / "treasure"
    (treasure / "deep").mkdir(parents=True)
    with bind(treasure, folder / "CMakeFiles/x"):
        age_all(folder, 45)
        judged = world.judged(folder)
    assert judged.verdict == UNCLEAR
    assert f"{folder}/CMakeFiles/x is mounted in it" in judged.reasons


@needs_root
@pytest.mark.parametrize("what", ["", "CMakeFiles", "CMakeFiles/provider.dir/fmha_sm80.cu.o"])
def test_37_a_folder_with_anything_of_someone_elses_is_unclear(world: World, what: str) -> None:
    folder = world.add("Linux/Debug", 45)
    os.chown(folder / what, NOBODY, NOBODY)
    judged = world.judged(folder)
    assert judged.verdict == UNCLEAR
    assert "belongs to" in judged.reasons[0]


def test_37_a_folder_without_a_cache_is_unclear(world: World) -> None:
    folder = world.add("Linux/Debug", 45)
    (folder / "CMakeCache.txt").unlink()
    assert "no CMakeCache.txt" in world.judged(folder).reasons[0]


def test_37_a_cache_that_is_a_link_counts_as_none(world: World) -> None:
    folder = world.add("Linux/Debug", 45)
    os.rename(folder / "CMakeCache.txt", folder / "real.txt")
    (folder / "CMakeCache.txt").symlink_to("real.txt")
    assert "is a link" in world.judged(folder).reasons[0]


def test_37_a_cache_of_another_checkout_is_unclear(world: World, tmp_path: Path) -> None:
    folder = world.add("Linux/Debug", 45, home=tmp_path / "elsewhere/cmake")
    assert "names another checkout" in world.judged(folder).reasons[0]


def test_a_copied_build_folder_is_unclear(world: World) -> None:
    folder = world.add("Linux/Kept", 45, made_in=world.root / "build/Linux/Debug")
    assert "copied or moved" in world.judged(folder).reasons[0]


def test_a_build_folder_beside_the_build_root_is_listed_and_never_offered(world: World) -> None:
    folder = world.add("../build_old/Release", 45, made_in=world.root / "build_old/Release")
    folder = world.root / "build_old/Release"
    judged = world.judged(folder)
    assert judged.verdict == UNCLEAR
    assert "does not lie in the build root" in judged.reasons[0]


def test_a_socket_keeps_a_folder(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = world.add("Linux/Debug", 45)
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("sock")
        assert "socket" in world.judged(folder).reasons[0]


@needs_root
def test_a_folder_that_cannot_be_read_whole_is_unclear() -> None:
    def work(folder: Path) -> str:
        world = World(folder / "ort")
        debug = world.add("Linux/Debug", 45)
        (debug / "CMakeFiles").chmod(0)
        judged = world.judged(debug)
        return "\n".join((judged.verdict, *judged.reasons))

    answer = as_nobody(work)
    assert answer.startswith(f"{UNCLEAR}\n"), answer
    assert "CMakeFiles cannot be read" in answer


# -- who uses it -----------------------------------------------------------------------------------------


USES = {
    "working directory": ("pass", "works in"),
    "open file": ("f = open(sys.argv[1] + '/libonnxruntime_providers_cuda.so')", "has open"),
    "open directory": ("f = os.open(sys.argv[1], os.O_RDONLY)", "has open"),
    # Python's own mmap keeps a descriptor.
    "mapped file": ("import ctypes; f = os.open(sys.argv[1] + '/libonnxruntime_providers_cuda.so', os.O_RDONLY);"
                    "c = ctypes.CDLL(None); c.mmap.restype = ctypes.c_void_p;"
                    "c.mmap(None, ctypes.c_size_t(4096), 1, 2, f, ctypes.c_long(0)); os.close(f)", "has mapped"),
    "deleted open file": ("f = open(sys.argv[1] + '/gone.o', 'w'); os.unlink(f.name)", "has open"),
}


@pytest.mark.parametrize("use", USES)
def test_37_a_real_process_that_uses_a_folder_makes_it_active(world: World, use: str) -> None:
    folder = world.add("Linux/Debug", 45)
    code, how = USES[use]
    # The folder reaches the child by its environment: a command line that names it would be found by itself.
    words = python(f"sys.argv.append(os.environ['FOLDER']); {code}")
    with process(words, env={**os.environ, "FOLDER": str(folder)},
                 cwd=folder / "CMakeFiles" if use == "working directory" else "/") as child:
        age_all(folder, 45)
        judged = world.judged(folder, see_processes)
    assert judged.verdict == ACTIVE
    assert [holder.pid for holder in judged.holders] == [child.pid]
    assert how in judged.reasons[0]
    assert f"process {child.pid}" in judged.reasons[0]


def test_a_compiler_elsewhere_that_names_the_folder_makes_it_active(world: World) -> None:
    folder = world.add("Linux/Debug", 45)
    with process([*python("pass"), "-o", f"{folder}/CMakeFiles/a.o"], cwd="/") as child:
        judged = world.judged(folder, see_processes)
        sibling = world.judged(world.add("Linux/Debu", 45), see_processes)
    assert [holder.pid for holder in judged.holders] == [child.pid]
    assert sibling.holders == ()


def test_a_program_that_runs_from_the_folder_makes_it_active(world: World) -> None:
    folder = world.add("Linux/Debug", 45)
    (folder / "tool").write_bytes(Path("/bin/sleep").read_bytes())
    (folder / "tool").chmod(0o755)
    age_all(folder, 45)
    child = subprocess.Popen(["sleeper", "60"], executable=folder / "tool", cwd="/")
    try:
        for _ in range(100):
            judged = world.judged(folder, see_processes)
            if judged.holders:
                break
            time.sleep(0.02)
        assert judged.verdict == ACTIVE
        assert "runs" in judged.reasons[0] or "mapped" in judged.reasons[0]
    finally:
        child.kill()
        child.wait()


@needs_root
def test_a_process_that_came_in_by_a_bind_mount_is_found(world: World, tmp_path: Path) -> None:
    folder = world.add("Linux/Debug", 45)
    with bind(world.root / "build", tmp_path / "alias"), process(python("pass"), cwd=tmp_path / "alias/Linux/Debug"):
        assert world.judged(folder, see_processes).verdict == ACTIVE


@needs_root
def test_a_process_in_another_pid_namespace_that_can_reach_the_folder_makes_it_unclear(world: World) -> None:
    folder = world.add("Linux/Debug", 45)
    with process(["unshare", "--pid", "--fork", "--kill-child", *python("pass")], cwd="/"):
        judged = world.judged(folder, see_processes)
    assert judged.verdict == UNCLEAR
    assert any("in another PID namespace can reach it" in reason for reason in judged.reasons)


@needs_root
def test_a_process_that_cannot_be_inspected_makes_a_folder_unclear() -> None:
    def work(folder: Path) -> str:
        world = World(folder / "ort")
        judged = world.judged(world.add("Linux/Debug", 45), see_processes)
        return "\n".join((judged.verdict, *judged.reasons))

    with process(python("pass"), cwd="/"):
        answer = as_nobody(work)
    assert answer.startswith(f"{UNCLEAR}\n"), answer
    assert "cannot be inspected" in answer


def test_hidden_processes_and_a_container_of_our_own_make_a_folder_unclear(world: World) -> None:
    folder = world.add("Linux/Debug", 45)
    mounts = read_mounts()
    hidden = world.judged(folder, lambda: Processes(hidden=("make (process 7, bob)",), mounts=mounts))
    assert (hidden.verdict, hidden.reasons) == (UNCLEAR, ("make (process 7, bob) cannot be inspected",))
    inside = world.judged(folder, lambda: Processes(mounts=mounts, inside=True))
    assert inside.verdict == UNCLEAR
    assert "PID namespace" in inside.reasons[0]


def test_doit_started_in_a_folder_keeps_it(world: World) -> None:
    folder = world.add("Linux/Debug", 45)
    box = survey(world.root, world.configured, 30, see=unused, started_in=folder / "CMakeFiles")
    assert next(one for one in box.folders if one.path == folder).reasons == ("doit was started in it",)


# -- mounts ----------------------------------------------------------------------------------------------


MOUNTS = parse_mounts(r"""22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 8:2 / /home rw - ext4 /dev/sda2 rw
31 22 8:2 /me/with\040space /mnt/a rw master:1 - ext4 /dev/sda2 rw
32 22 8:2 /me/with\040space/ort/build /mnt/b rw - ext4 /dev/sda2 rw
33 22 0:40 / /net rw - nfs4 server:/x rw
34 33 0:41 / /net/fuse rw - fuse.sshfs x rw
""")


def test_escaped_names_in_mountinfo_are_read() -> None:
    assert MOUNTS[2] == Mount(31, "8:2", "/me/with space", "/mnt/a", "ext4", "rw")


def test_a_folder_is_known_by_all_its_names() -> None:
    assert set(names_of("/home/me/with space/ort", MOUNTS)) == {"/home/me/with space/ort", "/mnt/a/ort", "/mnt/b"}
    assert set(names_of("/mnt/b/Debug", MOUNTS)) == {
        "/home/me/with space/ort/build/Debug", "/mnt/a/ort/build/Debug", "/mnt/b/Debug"}
    assert set(names_of("/home/you", MOUNTS)) == {"/home/you"}


def test_a_network_file_system_is_not_local(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    assert [mount.local for mount in MOUNTS] == [True, True, True, True, False, False]
    folder = world.add("Linux/Debug", 45)
    monkeypatch.setattr("tasks.box.survey.read_mounts", lambda: (Mount(1, "0:40", "/", "/", "nfs4", "rw"),))
    judged = world.judged(folder)
    assert (judged.verdict, judged.reasons) == (UNCLEAR, ("its file system (nfs4) may be in use on other machines",))
