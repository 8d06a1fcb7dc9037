"""Builds that go wrong or are done by others: by hand, in part, half-failed, killed, two at once, restored files."""

from __future__ import annotations

import shutil
import time

from tests.campaign.cells import host, make, relocatable, shared
from tests.campaign.scenario import scenario
from tests.campaign.world import World

FOUR = ("fmha_sm50", "fmha_sm70", "fmha_sm75", "fmha_sm80")


def _touch_the_four(w: World) -> None:
    for unit in FOUR:
        w.unit(unit).touch()


@scenario("an edit is built by hand", quick=True)
def by_hand(w: World) -> None:
    w.edit("kernel_forward")
    _touch_the_four(w)
    w.by_hand()
    w.look()
    w.update()
    w.update()


@scenario("a build by hand has nothing to do")
def by_hand_nothing(w: World) -> None:
    w.by_hand()
    w.look()
    w.update()


@scenario("an object is replaced by that of the code before, with a new time")
def object_replaced(w: World) -> None:
    kept = w.object("fmha_sm80").read_bytes()
    w.edit("kernel_forward")
    w.update()
    w.object("fmha_sm80").write_bytes(kept)
    w.look()
    w.update()


@scenario("an object is replaced by that of the code before, with size and time of the new one")
def object_replaced_with_time(w: World) -> None:
    kept = w.object("fmha_sm80").read_bytes()
    w.edit("kernel_forward")
    w.update()
    with w.same_time(w.object("fmha_sm80")):
        w.object("fmha_sm80").write_bytes(kept)
    w.by_hand()
    w.look()
    w.update()


@scenario("an object is deleted")
def object_deleted(w: World) -> None:
    w.object("fmha_sm80").unlink()
    w.update()


@scenario("an object is deleted after an edit with an old time")
def object_deleted_after_edit(w: World) -> None:
    w.edit("kernel_forward")
    w.age(w.header("kernel_forward"))
    w.object("fmha_sm80").unlink()
    w.update()


@scenario("an object bears a time of tomorrow, then a header is edited")
def object_from_the_future(w: World) -> None:
    w.age(w.object("fmha_sm80"), time.time() + 86400)
    w.edit("kernel_forward")
    w.update()


@scenario("the provider is put back to the one before the edit", quick=True)
def provider_put_back(w: World) -> None:
    kept = w.place.provider.read_bytes()
    w.edit("kernel_forward")
    w.update()
    w.place.provider.write_bytes(kept)
    w.look()
    w.update()


@scenario("only launch code is edited and the provider is not linked again")
def host_only_edit_unlinked(w: World) -> None:
    kept = w.place.provider.read_bytes()
    w.edit("fmha_launch_template")
    w.update()
    w.place.provider.write_bytes(kept)
    w.look()
    w.update()


@scenario("the test executable's time is old although all is built")
def old_executable(w: World) -> None:
    w.edit("kernel_forward")
    w.update()
    w.age(w.place.executable)
    w.look()


@scenario("the provider is deleted", fits=shared)
def provider_deleted(w: World) -> None:
    w.place.provider.unlink()
    w.look()
    w.update()


@scenario("a header is broken, built, and mended")
def broken_and_mended(w: World) -> None:
    header = w.header("kernel_forward")
    w.edit("kernel_forward")
    good = w.swap(header, lambda: header.write_text(header.read_text() + "\n#error broken\n"))
    w.update()
    w.look()
    header.write_bytes(good)
    w.look()
    w.update()


@scenario("a header is broken and put back as it was, with its old time")
def broken_and_put_back(w: World) -> None:
    header = w.header("kernel_forward")
    with w.same_time(header):
        good = w.swap(header, lambda: header.write_text(header.read_text() + "\n#error broken\n"))
        w.update()
        header.write_bytes(good)
    w.update()


@scenario("the build command hides a failed compile")
def hidden_failure(w: World) -> None:
    header = w.header("kernel_forward")
    good = w.swap(header, lambda: header.write_text(header.read_text() + "\n#error broken\n"))
    w.wrap_build(after="exit 0")
    w.update()
    header.write_bytes(good)
    w.edit("kernel_forward")
    w.update()


def _only_objects(w: World) -> str:
    """Shell lines that compile the four units' objects and link nothing."""
    objects = [w.object(unit).relative_to(w.place.build_dir) for unit in FOUR]
    names = " ".join(f'"{name}"' for name in objects)
    target = str(objects[0]).partition(".dir/")[0] + ".dir"
    return (f'cd "{w.place.build_dir}"; ' + (f"make -f {target}/build.make {names}" if w.cell.is_make else
                                             f"ninja {names}"))


@scenario("the objects are compiled, and the link is left out")
def link_left_out(w: World) -> None:
    w.edit("kernel_forward")
    w.wrap_build(build=_only_objects(w), after="exit 0")
    w.update()
    w.update()


@scenario("the objects are compiled, and the link fails")
def link_fails(w: World) -> None:
    w.edit("kernel_forward")
    w.wrap_build(build=_only_objects(w), after="exit 1")
    w.update()
    w.look()
    w.update()


@scenario("three of four objects are compiled; the fourth is put back", undecidable=host,
          reason="the build links the new object and then puts the old one back: the provider holds the edit, the "
                 "object beside it does not. Link 2 judges the object and says so; the oracle reads the provider")
def three_of_four(w: World) -> None:
    obj = w.object("fmha_sm70")
    w.edit("kernel_forward")
    w.wrap_build(before=f'cp -p "{obj}" "{obj}.kept"', after=f'mv "{obj}.kept" "{obj}"')
    w.update()
    w.update()


@scenario("a launcher's cache lays down the old object with a new time", fits=shared,
          undecidable=host,
          reason="a host compiler's object says nothing of its inputs, and equal bytes are what a comment's edit "
                 "leaves, too. A launcher that hands out the object of other code is trusted like the compiler that it "
                 "stands for; nvcc's objects never have equal bytes, so there it is found out")
def lying_cache(w: World) -> None:
    obj = w.object("fmha_sm80")
    kept = obj.with_name("kept")
    shutil.copy(obj, kept)
    w.edit("kernel_forward")
    w.wrap_build(before=_only_objects(w), build=f'cp "{kept}" "{obj}"; "$0.real" "$@"')
    w.update()
    w.update()


@scenario("only one target is built by `make -f build.make` before its depfiles are folded in",
          fits=make)
def fast_target(w: World) -> None:
    with w.others():
        for obj in w.objects():
            obj.unlink()
        for path in w.depfiles():
            path.unlink()
        w.forget_records()
    w.edit("kernel_forward")
    w.wrap_build(build=_only_objects(w))
    w.place.script()
    w.edit("kernel_forward")
    w.age(w.header("kernel_forward"), time.time())
    w.update()


@scenario("only the test target is built, which does not stand on the provider", fits=shared)
def test_target_only(w: World) -> None:
    w.replace(w.place.root / "cmake" / "onnxruntime_unittests.cmake",
              "add_dependencies(onnxruntime_provider_test ${onnxruntime_providers_cuda_target})", "")
    w.reconfigure()
    w.adopt()
    w.edit("kernel_forward")
    w.update(target="onnxruntime_provider_test")


@scenario("two builds run at once")
def two_at_once(w: World) -> None:
    w.edit("kernel_forward")
    with w.running(), w.running():
        pass
    w.look()
    w.update()


@scenario("the build is killed at once, then the header is edited again")
def killed_early(w: World) -> None:
    w.edit("kernel_forward")
    w.killed(0.35)
    w.look()
    w.edit("kernel_forward")
    w.age(w.header("kernel_forward"))
    w.look()
    w.update()


@scenario("the build is killed late")
def killed_late(w: World) -> None:
    w.edit("kernel_forward")
    w.age(w.header("kernel_forward"))
    w.killed(0.9)
    w.look()
    w.update()


@scenario("the build is killed and the edit undone", undecidable=host,
          reason="a recompile that was begun withdraws the receipt for good, whatever was undone since: one recompile "
                 "too many rather than trust in an object that a killed build may have written")
def killed_and_undone(w: World) -> None:
    header = w.header("kernel_forward")
    with w.same_time(header):
        kept = w.swap(header, lambda: w.edit("kernel_forward"))
        w.killed(0.7)
        header.write_bytes(kept)
    w.look()
    w.update()


@scenario("the device-link object of the code before is linked by hand", fits=relocatable)
def old_device_link(w: World) -> None:
    device_link = next(w.place.build_dir.rglob("cmake_device_link.o"))
    kept = device_link.read_bytes()
    w.edit("kernel_forward")
    w.update()
    device_link.write_bytes(kept)
    w.by_hand()
    w.look()
    w.update()
