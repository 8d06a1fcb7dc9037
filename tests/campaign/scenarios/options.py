"""Headers that the compile line, CMake or the build itself brings in: folders, options, response files."""

from __future__ import annotations

from pathlib import Path

from tests.campaign.cells import plugin
from tests.campaign.scenario import scenario
from tests.campaign.world import World


def _for_each_target(w: World, command: str) -> None:
    """Add a CMake command on `${target}`, for every target that compiles a unit."""
    w.in_cmake(f"foreach(target ${{onnxruntime_providers_cuda_target}} ${{provider_parts}})\n  {command}\nendforeach()")


def _look_and_update_twice(w: World) -> None:
    """The second update has nothing to do."""
    w.look()
    w.update()
    w.update()


def _third_party(w: World, option: str) -> None:
    tiles = w.write(w.place.beside / "include" / "tiles.h", "third_party_tiles")
    _for_each_target(w, option.replace("FOLDER", str(w.place.beside / "include")).replace("FILE", str(tiles)))
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
    _for_each_target(w, f'target_compile_options(${{target}} PRIVATE "@{flags}")')
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


def _configured(w: World) -> Path:
    source = w.place.root / "cmake" / "onnxruntime_config.h.in"
    w.include('#include "core/providers/cuda/unit_record.h"\n#define MINIORT_CONFIG_REVISION 1\n'
              "MINIORT_WATCHED_HEADER(config, MINIORT_CONFIG_REVISION)", source)
    w.reconfigure()
    w.adopt()
    w.edit_upstream(source, "config")
    return source


@scenario("a header that CMake configures into the build directory changes")
def configured(w: World) -> None:
    _configured(w)
    _look_and_update_twice(w)


@scenario("a header that CMake configures changes, and its input has an old time")
def configured_old(w: World) -> None:
    w.age(_configured(w))
    _look_and_update_twice(w)


def _generated(w: World) -> Path:
    source = w.write(w.place.root / "cmake" / "schema.h", "generated_schema")
    w.in_cmake('add_custom_command(OUTPUT "${PROJECT_BINARY_DIR}/schema_generated.h" COMMAND ${CMAKE_COMMAND} -E copy '
               '"${PROJECT_SOURCE_DIR}/schema.h" "${PROJECT_BINARY_DIR}/schema_generated.h"\n'
               '  DEPENDS "${PROJECT_SOURCE_DIR}/schema.h")\n'
               'add_custom_target(schema DEPENDS "${PROJECT_BINARY_DIR}/schema_generated.h")')
    _for_each_target(w, "add_dependencies(${target} schema)")
    w.include('#include "schema_generated.h"')
    w.reconfigure()
    w.adopt()
    w.edit_upstream(source, "generated_schema")
    return source


@scenario("a header that a command of the build generates changes", quick=True)
def generated(w: World) -> None:
    _generated(w)
    _look_and_update_twice(w)


@scenario("a header that a command of the build generates changes, and its input has an old time")
def generated_old(w: World) -> None:
    w.age(_generated(w))
    _look_and_update_twice(w)


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


def _flag(w: World) -> Path:
    w.include("#ifndef TILE\n#define TILE 1\n#endif\n#include \"core/providers/cuda/unit_record.h\"\n"
              "MINIORT_WATCHED_HEADER(tile, TILE)")
    w.adopt()
    _for_each_target(w, "target_compile_definitions(${target} PRIVATE TILE=2)")
    w.ledger.meant["tile"] = 2
    return w.place.root / "cmake" / "onnxruntime_providers_cuda.cmake"


@scenario("a CMake flag of the units changes", quick=True)
def flag(w: World) -> None:
    _flag(w)
    _look_and_update_twice(w)


@scenario("a CMake flag of the units changes, and the CMake file has an old time")
def flag_old(w: World) -> None:
    w.age(_flag(w))
    _look_and_update_twice(w)


@scenario("a CMake file is touched")
def cmake_touched(w: World) -> None:
    (w.place.root / "cmake" / "onnxruntime_providers_cuda.cmake").touch()
    w.look()
    w.update()


@scenario("a comment in a CMake file is edited")
def cmake_comment(w: World) -> None:
    w.in_cmake("# nothing new")
    w.update()
    w.look()
