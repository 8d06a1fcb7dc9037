"""A kept survey is the one that a new look makes: after every kind of change, the two are held against each other."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from tasks.checkout.reading import noting
from tasks.closure.catalogue import Catalogue
from tasks.evidence.snapshot import identity_of
from tasks.settings import Settings, load
from tasks.survey import Survey, read_survey
from tests.bench.generated import FAMILIES, FMHA, generate

GENERATORS = ["Unix Makefiles", "Ninja"]
OLD = 978307200
BUILD_FILES = {"build.make", "flags.make", "link.txt", "build.ninja", "rules.ninja"}


class World:
    """A configured checkout of few units, looked at again and again."""

    def __init__(self, root: Path, generator: str) -> None:
        self.root = root
        self.build_dir = root / "build" / "Linux" / "Release"
        generate(root, units=16, headers=20, each=5)
        self.configure("-G", generator)
        self.state = self.build_dir / ".fmha"
        self.state.mkdir()
        self.environ: dict[str, str] = {}
        self.look()
        time.sleep(0.05)  # what was written a moment ago is not believed to stay
        self.look()

    def configure(self, *options: str) -> None:
        words = ["cmake", "-S", self.root / "cmake", "-B", self.build_dir, "-DCMAKE_BUILD_TYPE=Release", *options]
        subprocess.run(words, check=True, capture_output=True)

    @property
    def settings(self) -> Settings:
        places = {"FMHA_ORT_ROOT": str(self.root), "FMHA_BUILD_DIR": str(self.build_dir)}
        return load(self.root, places, {}, self.root)

    def look(self) -> Survey:
        return read_survey(self.settings, self.environ)

    def anew(self) -> Survey:
        """A look without anything kept."""
        aside = self.state.rename(self.state.with_name("aside"))
        try:
            return self.look()
        finally:
            aside.rename(self.state)

    def read(self) -> set[str]:
        """Names of the build files that a look reads."""
        with noting() as notes:
            self.look()
        return {os.path.basename(path) for path in notes.stamps}

    def path(self, name: str) -> Path:
        return self.root / name


def facts(survey: Survey) -> Mapping[str, object]:
    return {"linked": survey.linked.path, "steps": survey.steps, "headers": survey.headers,
            "units": {name: (unit.facts, unit.reaches, unit.unit, unit.line, unit.closure.files)
                      for name, unit in survey.units.items()}}


@pytest.fixture(params=GENERATORS)
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return World(tmp_path / "ort", request.param)


def test_a_second_look_reads_no_build_file(world: World) -> None:
    assert not world.read() & BUILD_FILES
    assert facts(world.look()) == facts(world.anew())


def _other_flags(world: World) -> None:
    world.configure("-DCMAKE_CXX_FLAGS=-DOTHER")


def _flags_by_hand(world: World) -> None:
    for name in ("build.ninja", "CMakeFiles/onnxruntime_providers_cuda.dir/build.make"):
        path = world.build_dir / name
        if path.exists():
            stat = path.stat()
            path.write_text(path.read_text().replace("-O0", "-O1"))
            os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))


def _another_unit_begins(world: World) -> None:
    unit = world.path("onnxruntime/unit11.cc")
    unit.write_text(f'#include "{FMHA}/kernel_forward.h"\n')


def _another_unit_begins_in_secret(world: World) -> None:
    unit = world.path("onnxruntime/unit11.cc")
    unit.write_text(f'#include "{FMHA}/kernel_forward.h"\n')
    os.utime(unit, (OLD, OLD))


def _a_header_in_the_middle_begins(world: World) -> None:
    with world.path("include/part0/group0.h").open("a") as header:
        header.write(f'#include "{FMHA}/kernel_forward.h"\n')


def _a_unit_ends(world: World) -> None:
    world.path("onnxruntime/unit0.cc").write_text("int unit0() { return 0; }\n")


def _a_new_unit(world: World) -> None:
    world.path(f"{FMHA}/fmha_sm90.cu").write_text('#include "fmha_launch_template.h"\n')
    world.configure()


def _a_header_becomes_a_link(world: World) -> None:
    header = world.path("include/part1/h1.h")
    header.unlink()
    header.symlink_to(world.path(f"{FMHA}/kernel_forward.h"))


def _a_header_shadows(world: World) -> None:
    world.path("include/part0/h1.h").write_text("#pragma once\n")  # in front of the one in part1


def _a_search_folder_by_environment(world: World) -> None:
    world.path("onnxruntime/unit11.cc").write_text("#include <kernel_forward.h>\n")
    world.look()
    world.environ["CPATH"] = str(world.path(FMHA))


def _a_watched_header_is_new(world: World) -> None:
    world.path(f"{FMHA}/tile_smem_loader.h").write_text("#pragma once\n")
    world.path("onnxruntime/unit12.cc").write_text(f'#include "{FMHA}/tile_smem_loader.h"\n')


def _a_watched_header_is_another_file(world: World) -> None:
    header = world.path(f"{FMHA}/kernel_forward.h")
    header.with_name("new").write_text(header.read_text() + "int more;\n")
    header.with_name("new").rename(header)


CHANGES = [_other_flags, _flags_by_hand, _another_unit_begins, _another_unit_begins_in_secret,
           _a_header_in_the_middle_begins, _a_unit_ends, _a_new_unit, _a_header_becomes_a_link, _a_header_shadows,
           _a_search_folder_by_environment, _a_watched_header_is_new, _a_watched_header_is_another_file]


@pytest.mark.parametrize("change", CHANGES)
def test_a_kept_look_is_the_one_that_a_new_look_makes(world: World, change: Callable[[World], None]) -> None:
    before = facts(world.look())
    change(world)
    anew = facts(world.anew())
    if change is not _a_watched_header_is_another_file:
        assert anew != before, "a change that no look can see shows nothing"
    assert facts(world.look()) == anew
    assert facts(world.look()) == anew


@pytest.mark.parametrize("kept", [True, False])
def test_a_watched_header_that_is_replaced_during_a_look_stays_watched(
        world: World, monkeypatch: pytest.MonkeyPatch, kept: bool) -> None:
    before = {name: unit.reaches for name, unit in world.look().units.items()}
    if not kept:
        shutil.rmtree(world.state)
    mask_of = Catalogue.mask_of

    def in_the_middle(catalogue: Catalogue, headers: tuple[str, ...]) -> int:
        _a_watched_header_is_another_file(world)  # as an editor saves it
        return mask_of(catalogue, headers)

    monkeypatch.setattr(Catalogue, "mask_of", in_the_middle)
    assert {name: unit.reaches for name, unit in world.look().units.items()} == before


def test_a_unit_outside_the_watched_ones_is_found_by_its_new_include(world: World) -> None:
    _another_unit_begins_in_secret(world)
    assert set(world.look().units) == {*FAMILIES, *(f"unit{number}" for number in range(10)), "unit11"}


@pytest.mark.parametrize("unit", ["unit0", "unit11"])
def test_after_a_unit_left_the_provider_the_second_look_reads_no_build_file(world: World, unit: str) -> None:
    lists = world.path("cmake/CMakeLists.txt")
    left = f'list(FILTER UNITS EXCLUDE REGEX "/{unit}[.]cc$")\n'
    lists.write_text(lists.read_text().replace("set_source_files_properties", left + "set_source_files_properties", 1))
    world.configure()
    world.look()
    time.sleep(0.05)
    world.look()
    assert not world.read() & BUILD_FILES
    assert facts(world.look()) == facts(world.anew())


@pytest.mark.parametrize("content", ["", "{", "[]", '{"key": 1}'])
def test_a_damaged_outline_is_as_none(world: World, content: str) -> None:
    (world.state / "outline").write_text(content)
    assert facts(world.look()) == facts(world.anew())


def test_closures_of_another_moment_do_not_go_with_the_outline(world: World, tmp_path: Path) -> None:
    kept = shutil.copy(world.state / "closures", tmp_path / "closures")
    (world.build_dir / "extra").mkdir()
    world.configure(f"-DCMAKE_CXX_FLAGS=-I{world.path(FMHA)}")
    world.look()
    shutil.copy(kept, world.state / "closures")
    world.path("onnxruntime/unit11.cc").write_text("#include <kernel_forward.h>\n")
    assert "unit11" in world.look().units


def test_a_copied_build_directory_brings_no_outline(world: World) -> None:
    copy = world.root / "build" / "Linux" / "Copy"
    shutil.copytree(world.build_dir, copy)
    places = {"FMHA_ORT_ROOT": str(world.root), "FMHA_BUILD_DIR": str(copy)}
    survey = read_survey(load(world.root, places, {}, world.root), {})
    assert survey.linked.path.parent == copy


def test_nothing_is_written_where_there_is_no_state(world: World) -> None:
    shutil.rmtree(world.state)
    world.look()
    assert not world.state.exists()


def test_a_kept_look_tells_the_identities_that_it_asked_for(world: World) -> None:
    time.sleep(0.05)
    world.look()
    header = world.path(FMHA) / "kernel_forward.h"
    header.write_text(header.read_text() + "// edited\n")
    survey = world.look()
    assert survey.seen[str(header)] == list(identity_of(header) or ())
    assert survey.inputs & survey.seen.keys() == {path for path in survey.inputs if not path.startswith("/usr")}
    assert all(list(identity_of(path) or ()) == fields for path, fields in survey.seen.items())


def test_a_look_that_resolves_anew_tells_no_identity_from_before(world: World) -> None:
    header = world.path(FMHA) / "kernel_forward.h"
    header.write_text('#include "memory_efficient_attention.h"\n' + header.read_text())
    assert not world.look().seen
