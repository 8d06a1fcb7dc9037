"""Edits of sources, and what makes a build tool miss them: times, links, undone edits, edits while it compiles."""

from __future__ import annotations

import os

from tests.campaign.cells import any_cell
from tests.campaign.scenario import scenario
from tests.campaign.world import World


@scenario("a nested header is edited", fits=any_cell)
def nested(w: World) -> None:
    w.edit("kernel_forward")
    w.look()
    w.update()
    w.update()


@scenario("a header that other folders' units include is edited")
def interface(w: World) -> None:
    w.edit("memory_efficient_attention")
    w.look()
    w.update()


@scenario("nothing is edited", fits=any_cell, quick=True)
def nothing(w: World) -> None:
    w.look()
    w.update()


@scenario("a header is edited and bears a time of 2001", fits=any_cell, quick=True)
def old_time(w: World) -> None:
    w.edit("kernel_forward")
    w.age(w.header("kernel_forward"))
    w.look()
    w.update()


@scenario("another content of the same size and time", quick=True)
def same_size_and_time(w: World) -> None:
    with w.same_time(w.header("kernel_forward")):
        w.edit("kernel_forward")
    w.look()
    w.update()


@scenario("a unit is edited and bears its old time")
def unit_with_old_time(w: World) -> None:
    with w.same_time(w.unit("fmha_sm80")):
        w.include('#include "contrib_ops/cuda/bert/flash_attention/flash_api.h"\n'
                  '#include "core/providers/cuda/unit_record.h"\nMINIORT_WATCHED_HEADER(in_the_unit, 3)',
                  w.unit("fmha_sm80"))
    w.look()
    w.update()


@scenario("edited, built, edited again, reverted to what was built", quick=True)
def reverted(w: World) -> None:
    header = w.header("kernel_forward")
    w.edit("kernel_forward")
    w.update()
    built = w.swap(header, lambda: w.edit("kernel_forward"))
    w.look()
    header.write_bytes(built)
    w.look()
    w.update()


@scenario("a header is touched")
def touched(w: World) -> None:
    w.header("kernel_forward").touch()
    w.look()
    w.update()


@scenario("a branch switch there and back sets new times on all sources")
def all_touched(w: World) -> None:
    for path in (w.place.root / "onnxruntime").rglob("*"):
        if path.is_file():
            os.utime(path)
    w.look()


@scenario("two headers are edited, one of them undone")
def two_edits_one_undone(w: World) -> None:
    kept = w.swap(w.header("memory_efficient_attention"), lambda: w.edit("memory_efficient_attention"))
    w.edit("kernel_forward")
    w.header("memory_efficient_attention").write_bytes(kept)
    w.update()


@scenario("a comment is edited")
def comment(w: World) -> None:
    with w.header("kernel_forward").open("a") as file:
        file.write("// only a comment\n")
    w.update()
    w.update()


@scenario("a header is edited while a unit that read it compiles")
def edited_while_compiling(w: World) -> None:
    slow = ("constexpr int spin(int n) { int s = 0; for (int i = 0; i < n; ++i) s += i & 3; return s; }\n"
            "static_assert(spin(250000) + spin(250001) + spin(250002) + spin(250003) + spin(250004) > 0, \"slow\");\n")
    with w.unit("fmha_sm80").open("a") as file:
        file.write(slow)
    w.edit("kernel_forward")
    with w.running():
        w.wait_for_compile_of("fmha_sm80")
        w.edit("kernel_forward")
    w.look()
    w.update()


@scenario("a header is edited after the compile has read it, before the build ends")
def edited_before_the_end(w: World) -> None:
    w.edit("kernel_forward")
    # The compiler writes the object last: so its time is later than that of the edit.
    w.wrap_build(before="touch began",
                 after=f'sed -i "s/REVISION 2/REVISION 7/" "{w.header("kernel_forward")}"\n'
                       f'find "{w.place.build_dir}" -name "*.o" -newer began -exec touch {{}} +; rm began')
    w.update()
    w.update()


@scenario("an edit is undone before the compile reads it and comes back afterwards, with its old time", quick=True)
def stash_and_pop(w: World) -> None:
    header = w.header("kernel_forward")
    w.edit("kernel_forward")
    w.wrap_build(before=f'cp -p "{header}" "{header}.kept"; sed -i "s/REVISION 2/REVISION 1/" "{header}"',
                 after=f'cat "{header}.kept" > "{header}"; touch -r "{header}.kept" "{header}"; rm "{header}.kept"')
    w.update()
    w.update()


@scenario("the watched header is a link whose target is edited")
def link_target(w: World) -> None:
    header = w.header("kernel_forward")
    target = w.place.beside / "kernel_forward.h"
    header.rename(target)
    header.symlink_to(target)
    w.adopt()
    w.edit(target)
    w.look()
    w.update()


@scenario("a link is pointed to an older file")
def link_repointed(w: World) -> None:
    header = w.header("kernel_forward")
    first, second = w.place.beside / "first.h", w.place.beside / "second.h"
    second.write_text(header.read_text())
    w.edit(second, by=4)
    w.age(second)
    header.rename(first)
    header.symlink_to(first)
    w.adopt()
    header.unlink()
    header.symlink_to(second)
    os.utime(header, (1e9, 1e9), follow_symlinks=False)
    w.look()
    w.update()


@scenario("a file of another time is moved over the header")
def renamed_over(w: World) -> None:
    header = w.header("kernel_forward")
    other = header.with_suffix(".other")
    other.write_text(header.read_text())
    w.edit(other, by=5)
    w.age(other)
    other.replace(header)
    w.look()
    w.update()


@scenario("the checkout is reached through a link and a header edited")
def through_a_link(w: World) -> None:
    link = w.place.folder / "linked"
    link.symlink_to(w.place.root)
    w.place.point(link, link / w.place.build_dir.relative_to(w.place.root))
    w.look()
    w.edit("kernel_forward")
    w.look()
    w.update()
