"""State and surroundings: environment, copied build directories, damaged or manipulated state, other checkouts."""

from __future__ import annotations

import shutil

from tests.campaign.cells import module
from tests.campaign.scenario import scenario
from tests.campaign.world import World
from tests.support import FMHA


@scenario("CPATH names a folder with another header")
def cpath(w: World) -> None:
    # Before the folders that the build marks as SYSTEM.
    header = w.place.build_dir / "_deps/cutlass-src/include/cutlass/fast_math.h"
    shadow = w.place.beside / "include" / "cutlass" / "fast_math.h"
    shadow.parent.mkdir(parents=True)
    shutil.copy(header, shadow)
    w.include('#include "core/providers/cuda/unit_record.h"\nMINIORT_WATCHED_HEADER(shadow_math, 1)', shadow)
    w.place.environ = {"CPATH": str(w.place.beside / "include")}
    w.look()
    w.update()
    w.place.environ = {}
    w.look()
    w.update()


@scenario("a copy of the build directory is judged")
def copied(w: World) -> None:
    copy = w.place.build_dir.with_name("Copied")
    w.copy_build_dir(copy, times=True)
    w.place.point(w.place.root, copy)
    w.look()


@scenario("an edit is built, and a copy of the build directory from before it is judged")
def copied_before_the_edit(w: World) -> None:
    copy = w.place.build_dir.with_name("Copied")
    w.copy_build_dir(copy, times=False)
    w.edit("kernel_forward")
    w.age(w.header("kernel_forward"))
    w.update()
    w.place.point(w.place.root, copy)
    w.look()


@scenario("the build folder is copied with new times after the edit, and the copy takes its place")
def copy_takes_its_place(w: World) -> None:
    w.edit("kernel_forward")
    copy = w.place.build_dir.with_name("Copied")
    w.copy_build_dir(copy, times=False)
    shutil.rmtree(w.place.build_dir)
    copy.rename(w.place.build_dir)
    w.look()
    w.update()


@scenario("a build folder from before the edit is restored with its times")
def restored(w: World) -> None:
    copy = w.place.build_dir.with_name("Copied")
    w.copy_build_dir(copy, times=True)
    w.edit("kernel_forward")
    w.update()
    shutil.rmtree(w.place.build_dir)
    copy.rename(w.place.build_dir)
    w.look()
    w.age(w.header("kernel_forward"))
    w.update()


@scenario("the build directory belongs to another checkout", fits=module)
def other_checkout(w: World) -> None:
    other = w.place.folder / "other"
    shutil.copytree(w.place.root, other, symlinks=True, ignore=shutil.ignore_patterns("build"))
    build_dir = w.place.build_dir
    w.place.point(other, build_dir)
    w.edit(other / FMHA / "kernel_forward.h")
    w.age(other / FMHA / "kernel_forward.h")
    w.look()
    w.update()


@scenario("the state is garbage")
def garbage(w: World) -> None:
    for path in w.column.state(w.place):
        if path.exists():
            path.write_bytes(b"garbage")
    w.update()
    w.edit("kernel_forward")
    w.age(w.header("kernel_forward"))
    for path in w.column.state(w.place):
        if path.exists():
            path.write_bytes(b"")
    w.look()
    w.update()


@scenario("the state is deleted")
def deleted(w: World) -> None:
    for path in w.column.state(w.place):
        path.unlink(missing_ok=True)
    w.edit("kernel_forward")
    w.age(w.header("kernel_forward"))
    w.look()
    w.update()


@scenario("the state is deleted and nothing was edited")
def deleted_in_place(w: World) -> None:
    for path in w.column.state(w.place):
        path.unlink(missing_ok=True)
    w.look()
    w.update()


@scenario("one unit's task is ignored, then a header is edited", quick=True)
def ignored(w: World) -> None:
    w.column.manage(w.place, "ignore", "object:fmha_sm80")
    w.edit("kernel_forward")
    w.look()
    w.update()


@scenario("doit's state is reset on a stale tree")
def reset(w: World) -> None:
    w.edit("kernel_forward")
    w.age(w.header("kernel_forward"))
    w.column.manage(w.place, "reset-dep")
    w.look()
    w.update()


@scenario("doit's state is forgotten on a stale tree")
def forgotten(w: World) -> None:
    w.edit("kernel_forward")
    w.age(w.header("kernel_forward"))
    w.column.manage(w.place, "forget", "build")
    w.look()
    w.update()


@scenario("another generator takes the build directory over", fits=module)
def other_generator(w: World) -> None:
    w.edit("kernel_forward")
    w.age(w.header("kernel_forward"))
    for name in ("CMakeCache.txt", "compile_commands.json"):
        (w.place.build_dir / name).unlink()
    shutil.rmtree(w.place.build_dir / "CMakeFiles")
    tree = w.place.tree
    generator = tree.generator
    tree.generator = "Ninja" if w.cell.is_make else "Unix Makefiles"
    try:
        tree.configure()
    finally:
        tree.generator = generator
    w.look()
    w.update()
