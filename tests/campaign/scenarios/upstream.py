"""Edits of what the build first makes build files and headers from: CMake files, inputs of commands."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.campaign.cells import host
from tests.campaign.scenario import scenario
from tests.campaign.world import World


def _look_and_update_twice(w: World) -> None:
    """The second update has nothing to do."""
    w.look()
    w.update()
    w.update()


_Edit = Callable[[World], Path]


def _judge(edit: _Edit, w: World) -> None:
    edit(w)
    _look_and_update_twice(w)


def _judge_old(edit: _Edit, w: World) -> None:
    w.age(edit(w))
    _look_and_update_twice(w)


def _edit_of(name: str, old_name: str, quick: bool = False) -> Callable[[_Edit], _Edit]:
    """Two scenarios of one edit, which gives the file that was edited: as it is, and with an old time."""
    def put(edit: _Edit) -> _Edit:
        # Not closures: scenarios are sent to other processes.
        scenario(name, quick=quick)(partial(_judge, edit))
        scenario(old_name)(partial(_judge_old, edit))
        return edit

    return put


@_edit_of("a header that CMake configures into the build directory changes",
          "a header that CMake configures changes, and its input has an old time")
def _configured(w: World) -> Path:
    source = w.place.root / "cmake" / "onnxruntime_config.h.in"
    w.include('#include "core/providers/cuda/unit_record.h"\n#define MINIORT_CONFIG_REVISION 1\n'
              "MINIORT_WATCHED_HEADER(config, MINIORT_CONFIG_REVISION)", source)
    w.reconfigure()
    w.adopt()
    w.edit_upstream(source, "config")
    return source


@_edit_of("a header that a command of the build generates changes",
          "a header that a command of the build generates changes, and its input has an old time", quick=True)
def _generated(w: World, command: str = '${CMAKE_COMMAND} -E copy "${PROJECT_SOURCE_DIR}/schema.h" '
                                        '"${PROJECT_BINARY_DIR}/schema_generated.h"') -> Path:
    """A header that a command of the build makes, its input edited."""
    source = w.write(w.place.root / "cmake" / "schema.h", "generated_schema")
    w.in_cmake(f'add_custom_command(OUTPUT "${{PROJECT_BINARY_DIR}}/schema_generated.h" COMMAND {command}\n'
               '  DEPENDS "${PROJECT_SOURCE_DIR}/schema.h")\n'
               'add_custom_target(schema DEPENDS "${PROJECT_BINARY_DIR}/schema_generated.h")')
    w.on_each_target("add_dependencies(${target} schema)")
    w.include('#include "schema_generated.h"')
    w.reconfigure()
    w.adopt()
    w.edit_upstream(source, "generated_schema")
    return source


@_edit_of("a CMake flag of the units changes",
          "a CMake flag of the units changes, and the CMake file has an old time", quick=True)
def _flag(w: World) -> Path:
    w.include("#ifndef TILE\n#define TILE 1\n#endif\n#include \"core/providers/cuda/unit_record.h\"\n"
              "MINIORT_WATCHED_HEADER(tile, TILE)")
    w.adopt()
    w.on_each_target("target_compile_definitions(${target} PRIVATE TILE=2)")
    w.ledger.meant["tile"] = 2
    return w.place.root / "cmake" / "onnxruntime_providers_cuda.cmake"


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


def _pause(w: World, where: str) -> str:
    """Shell lines that stop for a while, once, where the scenario has asked for it."""
    mark = w.place.root / "cmake" / f"{where}.pause"
    return f'if [ -e "{mark}" ]; then rm "{mark}"; sh -c "sleep 3; :" "{mark}"; fi'


def _ask_for_pause(w: World, where: str) -> None:
    (w.place.root / "cmake" / f"{where}.pause").touch()


def _flag_with_pause(w: World) -> Path:
    """A flag, edited; the next run of CMake stops for a while after it has read it."""
    script = w.place.root / "cmake" / "pause.sh"
    script.write_text(_pause(w, "configure") + "\n")
    w.in_cmake(f'execute_process(COMMAND sh "{script}")', file="CMakeLists.txt")
    path = _flag(w)
    _ask_for_pause(w, "configure")
    return path


@scenario("a CMake file is edited while CMake, which has read it, runs")
def edited_while_configuring(w: World) -> None:
    path = _flag_with_pause(w)
    with w.running():
        w.wait_for_process("sleep 3", "configure.pause")
        w.replace(path, "TILE=2", "TILE=3")
        w.ledger.meant["tile"] = 3
    _look_and_update_twice(w)


@scenario("the build is killed while CMake runs")
def killed_while_configuring(w: World) -> None:
    _flag_with_pause(w)
    w.killed_at("sleep 3", "configure.pause")
    _look_and_update_twice(w)


def _generated_by_script(w: World, write: str) -> Path:
    """A header that a shell script makes with these lines; its input is edited."""
    script = w.place.root / "cmake" / "generate.sh"
    script.write_text(f'in="{w.place.root}/cmake/schema.h"\nout=$1\n{write}\n')
    return _generated(w, f'sh "{script}" "${{PROJECT_BINARY_DIR}}/schema_generated.h"')


@scenario("the command that generates a header fails half-way, and is mended")
def generator_fails(w: World) -> None:
    broken = w.place.root / "cmake" / "broken"
    _generated_by_script(w, f'if [ -e "{broken}" ]; then echo "#pragma once" > "$out"; exit 1; fi\ncp "$in" "$out"')
    broken.touch()
    w.update()
    broken.unlink()
    _look_and_update_twice(w)


@scenario("the build is killed while a header is being generated")
def generator_killed(w: World) -> None:
    _generated_by_script(w, f'echo "#pragma once" > "$out"\n{_pause(w, "generate")}\ncp "$in" "$out"')
    _ask_for_pause(w, "generate")
    w.killed_at("sleep 3", "generate.pause")
    _look_and_update_twice(w)


@scenario("what a header is generated from is edited while the command, which has read it, runs")
def edited_while_generating(w: World) -> None:
    source = _generated_by_script(w, f'cp "$in" "$out"\n{_pause(w, "generate")}\ntouch "$out"')
    _ask_for_pause(w, "generate")
    with w.running():
        w.wait_for_process("sleep 3", "generate.pause")
        w.edit_upstream(source, "generated_schema")
    _look_and_update_twice(w)


def _written_without_a_name(w: World) -> Path:
    """A header that a command of the build writes, of which no build file says so, as those of other projects are."""
    source = w.write(w.place.root / "cmake" / "schema.h", "generated_schema")
    w.in_cmake('file(MAKE_DIRECTORY "${PROJECT_BINARY_DIR}/found")\n'
               'add_custom_target(schema COMMAND ${CMAKE_COMMAND} -E copy_if_different\n'
               '  "${PROJECT_SOURCE_DIR}/schema.h" "${PROJECT_BINARY_DIR}/found/schema.h")')
    w.on_each_target("add_dependencies(${target} schema)")
    w.include('#include "found/schema.h"')
    w.reconfigure()
    w.adopt()
    return source


@scenario("what a command copies to a header that no build file names changes", undecidable=host,
          reason="which file such a command reads is not known, so only a build tells whether the header is current: "
                 "every update builds and is fresh, a look without a build is unproven")
def unnamed(w: World) -> None:
    source = _written_without_a_name(w)
    w.edit_upstream(source, "generated_schema")
    _look_and_update_twice(w)


@scenario("CMake is set never to run by itself in a build", undecidable=host,
          reason="with CMAKE_SUPPRESS_REGENERATION the build files do not list what CMake read, so nothing tells "
                 "whether they are current: unproven, with the command that ends it")
def never_configured_by_itself(w: World) -> None:
    w.reconfigure("CMAKE_SUPPRESS_REGENERATION=ON")
    w.look()
    w.update()
