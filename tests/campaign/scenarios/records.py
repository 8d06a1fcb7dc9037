"""What the build tool recorded of the headers, damaged or written otherwise: depfiles, make's and ninja's records."""

from __future__ import annotations

from pathlib import Path

from tests.campaign.cells import gap, make, ninja
from tests.campaign.scenario import scenario
from tests.campaign.world import World


def _edited(w: World) -> None:
    w.edit("kernel_forward")
    w.look()
    w.update()
    w.edit("kernel_forward")
    w.age(w.header("kernel_forward"))
    w.update()


@scenario("the depfiles and make's records are deleted", fits=make)
def depfiles_deleted(w: World) -> None:
    for path in w.depfiles():
        path.unlink()
    w.forget_records()
    _edited(w)


@scenario("make's records are deleted and the depfiles stay", fits=make)
def records_deleted(w: World) -> None:
    w.forget_records()
    _edited(w)


@scenario("make's records are gone, and make stops", fits=make)
def records_gone(w: World) -> None:
    for path in w.place.build_dir.glob("CMakeFiles/*.dir/compiler_depend.make"):
        path.unlink()
    w.look()
    w.edit("kernel_forward")
    w.update()


@scenario("the depfiles are empty", fits=make)
def depfiles_empty(w: World) -> None:
    for path in w.depfiles():
        path.write_bytes(b"")
    w.forget_records()
    _edited(w)


@scenario("the depfiles are cut in the middle", fits=make)
def depfiles_truncated(w: World) -> None:
    for path in w.depfiles():
        content = path.read_bytes()
        path.write_bytes(content[:len(content) // 2])
    w.forget_records()
    _edited(w)


@scenario("the depfiles name only a compiler's temporary file that is gone", fits=make)
def depfiles_of_temporaries(w: World) -> None:
    for path in w.depfiles():
        path.write_text(f"{path.with_suffix('')}: /tmp/tmpxft_0000_0000-6_gone.cpp1.ii\n")
    w.forget_records()
    _edited(w)


def _deps_log(w: World) -> Path:
    return w.place.build_dir / ".ninja_deps"


@scenario("ninja's record is deleted while the objects remain", fits=ninja)
def deps_log_deleted(w: World) -> None:
    _deps_log(w).unlink()
    _edited(w)


@scenario("ninja's record is cut in the middle", fits=ninja)
def deps_log_truncated(w: World) -> None:
    content = _deps_log(w).read_bytes()
    _deps_log(w).write_bytes(content[:len(content) // 2 + 3])
    _edited(w)


@scenario("ninja's record and log are of the build before the edit", fits=ninja)
def deps_log_old(w: World) -> None:
    log = w.place.build_dir / ".ninja_log"
    kept = _deps_log(w).read_bytes(), log.read_bytes()
    w.edit("kernel_forward")
    w.update()
    _deps_log(w).write_bytes(kept[0])
    log.write_bytes(kept[1])
    w.look()
    _edited(w)


@scenario("CMake's own scanner keeps the dependencies", fits=make)
def own_scanner(w: World) -> None:
    w.reconfigure("CMAKE_DEPENDS_USE_COMPILER=OFF")
    w.adopt()
    _edited(w)


@scenario("no depfile is written")
def no_depfile(w: World) -> None:
    w.replace(w.place.root / "cmake" / "CMakeLists.txt", "if(MINIORT_DEPFILE_GAP)\n",
              'set(CMAKE_DEPFILE_FLAGS_CXX "")\nset(CMAKE_DEPFILE_FLAGS_CUDA "")\nif(FALSE)\n')
    w.reconfigure()
    w.adopt()
    _edited(w)


@scenario("the folders are marked SYSTEM and the depfiles list everything", fits=gap)
def system_folders(w: World) -> None:
    w.replace(w.place.root / "cmake" / "CMakeLists.txt", "if(MINIORT_DEPFILE_GAP)\n", "if(FALSE)\n")
    w.reconfigure()
    w.adopt()
    _edited(w)


@scenario("a compiler cache stands before the compiler")
def compiler_cache(w: World) -> None:
    w.place.environ = {"CCACHE_DIR": str(w.place.beside / "ccache")}
    w.reconfigure("CMAKE_CXX_COMPILER_LAUNCHER=ccache")
    w.adopt()
    header = w.header("kernel_forward")
    w.edit("kernel_forward")
    w.update()
    kept = w.swap(header, lambda: w.edit("kernel_forward"))
    w.update()
    # The cache holds the object of this content.
    header.write_bytes(kept)
    w.age(header)
    w.look()
    w.update()
