"""Headers that the compile line brings in: folders, options, response files, and those of third parties."""

from __future__ import annotations

from tests.campaign.cells import plugin
from tests.campaign.scenario import scenario
from tests.campaign.world import World


def _third_party(w: World, option: str) -> None:
    tiles = w.write(w.place.beside / "include" / "tiles.h", "third_party_tiles")
    w.on_each_target(option.replace("FOLDER", str(w.place.beside / "include")).replace("FILE", str(tiles)))
    if "-include" not in option:
        w.include("#include <tiles.h>")
    w.reconfigure()
    w.adopt()
    w.edit(tiles)
    w.age(tiles)
    w.look()
    w.update()


@scenario("a header of an `-isystem` folder is edited")
def isystem(w: World) -> None:
    _third_party(w, 'target_include_directories(${target} SYSTEM PRIVATE "FOLDER")')


@scenario("a header that only `-include` on the command line brings in is edited")
def forced(w: World) -> None:
    _third_party(w, 'target_compile_options(${target} PRIVATE "SHELL:-include \\"FILE\\" -include '
                    '\\"${ONNXRUNTIME_ROOT}/core/providers/cuda/unit_record.h\\"")')


@scenario("the include folders stand in a response file")
def response_file(w: World) -> None:
    flags = w.place.beside / "flags.rsp"
    flags.write_text(f'-I "{w.place.beside / "include"}"\n')
    _third_party(w, f'target_compile_options(${{target}} PRIVATE "@{flags}")')


@scenario("a response file names another folder")
def response_file_edited(w: World) -> None:
    flags = w.place.beside / "flags.rsp"
    w.write(w.place.beside / "include1" / "tiles.h", "tiles")
    w.write(w.place.beside / "include2" / "tiles.h", "tiles", revision=8)
    flags.write_text(f'-I "{w.place.beside / "include1"}"\n')
    w.on_each_target(f'target_compile_options(${{target}} PRIVATE "@{flags}")')
    w.include("#include <tiles.h>")
    w.reconfigure()
    w.adopt()
    flags.write_text(f'-I "{w.place.beside / "include2"}"\n')
    w.age(flags)
    w.look()
    w.update()


@scenario("a header under _deps is patched", quick=True)
def third_party(w: World) -> None:
    header = w.place.build_dir / "_deps/cutlass-src/include/cutlass/fast_math.h"
    w.include('#include "core/providers/cuda/unit_record.h"\n#define MINIORT_FAST_MATH_REVISION 1\n'
              "MINIORT_WATCHED_HEADER(fast_math, MINIORT_FAST_MATH_REVISION)", header)
    w.adopt()
    w.edit(header)
    w.age(header)
    w.look()
    w.update()


@scenario("a header that the plugin's adapter includes is edited", fits=plugin)
def plugin_header(w: World) -> None:
    version = w.place.root / "onnxruntime/core/providers/cuda/plugin/plugin_version.h"
    w.include('#include "core/providers/cuda/unit_record.h"\n#define MINIORT_PLUGIN_REVISION 1\n'
              "MINIORT_WATCHED_HEADER(plugin_version, MINIORT_PLUGIN_REVISION)", version)
    w.adopt()
    w.edit(version)
    w.age(version)
    w.look()
    w.update()
