"""What the project reads from a build directory, against what the build really does."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tasks.checkout.locate import Location, locate
from tasks.checkout.model import read_checkout
from tasks.checkout.toolchain import Toolchain
from tasks.closure.resolve import Resolver
from tasks.errors import UserError
from tests.checkout.conftest import GENERATORS
from tests.checkout.projects import Project
from tests.closure.forest import compiler_folders, prerequisites

LINKED = {"archived", "dollar", "first", "inner", "name.so", "part one"}


def test_the_words_of_each_compile_are_those_that_ran(weird: Project) -> None:
    ran = weird.compiles
    for unit in weird.checkout().units:
        assert unit.statement.command[1:] == ran[str(unit.object)].words


def test_each_compile_runs_where_the_model_says(weird: Project) -> None:
    ran = weird.compiles
    for unit in weird.checkout().units:
        assert unit.statement.workdir == ran[str(unit.object)].workdir


def test_the_units_are_those_whose_objects_are_linked_in(weird: Project) -> None:
    assert set(weird.units()) == LINKED


def test_a_shared_library_beside_the_provider_is_not_part_of_it(weird: Project) -> None:
    assert "other" not in weird.units()


def test_the_name_of_an_object_may_look_like_a_shared_library(weird: Project) -> None:
    assert weird.units()["name.so"].object.name == "name.so.cc.o"


def test_sources_and_objects_exist(weird: Project) -> None:
    for unit in weird.checkout().units:
        assert unit.source.is_file()
        assert unit.object.is_file()


def test_each_unit_knows_its_target(weird: Project) -> None:
    targets = {name: unit.target for name, unit in weird.units().items()}
    assert targets == {"archived": "archive", "dollar": "part", "first": "onnxruntime_providers_cuda",
                       "inner": "inner", "name.so": "onnxruntime_providers_cuda", "part one": "part"}


def test_an_archive_is_a_step_before_the_provider(weird: Project) -> None:
    steps = [step.output.name for step in weird.checkout().provider.steps]
    assert steps == ["libarchive.a", "libonnxruntime_providers_cuda.so"]


def test_the_provider_is_the_shared_library(weird: Project) -> None:
    provider = weird.checkout().provider
    assert provider.path == weird.build_dir / "libonnxruntime_providers_cuda.so"
    assert provider.path.is_file()
    assert (provider.static, provider.target) == (False, "onnxruntime_providers_cuda")


def test_the_test_executable_is_found_by_name(weird: Project) -> None:
    test = weird.checkout().test
    assert test is not None
    assert (test.path, test.target) == (weird.build_dir / "onnxruntime_provider_test", "onnxruntime_provider_test")


def test_the_test_executable_is_found_by_path(weird: Project) -> None:
    for name in ("./onnxruntime_test_all", str(weird.build_dir / "onnxruntime_test_all")):
        test = weird.checkout(test=name).test
        assert test is not None
        assert test.target == "onnxruntime_test_all"


def test_a_test_executable_that_is_not_built_is_none(weird: Project) -> None:
    assert weird.checkout(test="onnxruntime_perf_test").test is None


def test_both_test_executables_are_told(weird: Project) -> None:
    names = sorted(path.name for path in weird.checkout().executables)
    assert names == ["onnxruntime_provider_test", "onnxruntime_test_all"]


def test_the_closure_is_what_the_compiler_wrote_down(weird: Project) -> None:
    unit = weird.units()["first"]
    search = unit.compile_line({}).search
    closure = Resolver(compiler_folders("g++"), (str(weird.root),)).closure(
        unit.source, search.quote, search.angle, search.forced, search.defines, search.system)
    depfile = Path(f"{unit.object}.d")
    # Ninja reads the depfile and removes it: there the sources are the only witness.
    real = {os.path.realpath(name) for name in prerequisites(depfile.read_text())} if depfile.exists() else {
        os.path.realpath(path) for path in (weird.root / "src").glob("*/*.h") if path.name != "inner.h"
    } | {os.path.realpath(weird.root / "src/for ced.h")}
    inside = {path for path in real if path.startswith(os.path.realpath(weird.root))} - {os.path.realpath(unit.source)}
    assert closure.files == inside


def test_flags_that_need_escapes_reach_the_compile_line(weird: Project) -> None:
    defines = weird.units()["first"].compile_line({}).search.defines
    assert {'HEADER="he ader.h"', "DOLLAR=a\\$b"} <= set(defines)


def test_a_copied_build_directory_has_its_own_objects(weird: Project, tmp_path: Path) -> None:
    copy = weird.copy(tmp_path / "copy")
    location = locate(weird.root, copy, tmp_path)
    assert location.copied_from == Path(os.path.realpath(weird.build_dir))
    units = read_checkout(location, "auto", "onnxruntime_provider_test").units
    assert {unit.name for unit in units} >= {"first", "archived"}
    for unit in units:
        assert str(unit.object).startswith(f"{os.path.realpath(copy)}/")
        assert unit.object.is_file()


def test_a_build_directory_behind_a_link_is_its_real_one(weird: Project, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(weird.build_dir)
    location = locate(weird.root, tmp_path / "link", tmp_path)
    assert location.build_dir == Path(os.path.realpath(weird.build_dir))
    assert location.copied_from is None


def test_a_static_provider_is_the_executable_that_holds_it(tmp_path: Path) -> None:
    lists = """cmake_minimum_required(VERSION 3.20)
project(static LANGUAGES CXX)
add_library(onnxruntime_providers_cuda STATIC ../unit.cc)
add_executable(onnxruntime_provider_test ../test.cc)
target_link_libraries(onnxruntime_provider_test PRIVATE onnxruntime_providers_cuda)
"""
    for generator in GENERATORS:
        project = Project(tmp_path / generator, generator, lists, {"unit.cc": "", "test.cc": "int main() {}\n"})
        provider = project.configure().checkout().provider
        assert provider.static
        assert provider.path == project.build_dir / "onnxruntime_provider_test"
        assert [step.output.name for step in provider.steps] == [
            "libonnxruntime_providers_cuda.a", "onnxruntime_provider_test"]
        assert [unit.name for unit in project.checkout().units] == ["unit"]
        with pytest.raises(UserError, match=r"link no libonnxruntime_providers_cuda\.so"):
            project.checkout(link_mode="shared")
        with pytest.raises(UserError, match="no test executable"):
            project.checkout(test="other_test")


def test_a_build_directory_with_several_configurations_is_that_of_its_name(tmp_path: Path) -> None:
    lists = """cmake_minimum_required(VERSION 3.20)
project(several LANGUAGES CXX)
add_library(onnxruntime_providers_cuda MODULE ../unit.cc)
add_executable(onnxruntime_provider_test ../test.cc)
"""
    project = Project(tmp_path / "ort", "Ninja Multi-Config", lists, {"unit.cc": "", "test.cc": ""}, "RelWithDebInfo")
    provider = project.configure().checkout().provider
    assert provider.path == project.build_dir / "RelWithDebInfo" / "libonnxruntime_providers_cuda.so"
    assert "-O2" in project.units()["unit"].statement.command


def test_ninjas_response_files_are_read_from_its_build_file(tmp_path: Path) -> None:
    lists = """cmake_minimum_required(VERSION 3.20)
project(response LANGUAGES CXX)
add_library(onnxruntime_providers_cuda MODULE ../unit.cc)
target_include_directories(onnxruntime_providers_cuda PRIVATE "../in c$x")
add_executable(onnxruntime_provider_test ../test.cc)
"""
    sources = {"unit.cc": "#include <d.h>\n", "in c$x/d.h": "", "test.cc": "int main() {}\n"}
    project = Project(tmp_path / "ort", "Ninja", lists, sources)
    project.configure("-DCMAKE_NINJA_FORCE_RESPONSE_FILE=ON").build()
    unit = project.units()["unit"]
    ran = project.compiles[str(unit.object)].words
    assert any(word.startswith("@") for word in ran)
    assert not any(word.startswith("@") for word in unit.statement.command)
    search = unit.compile_line({}).search
    assert [os.path.basename(folder) for folder in search.angle] == ["in c$x"]


@pytest.mark.cuda
def test_nvccs_compile_is_read_with_its_options_file(tmp_path: Path) -> None:
    lists = """cmake_minimum_required(VERSION 3.20)
project(cuda LANGUAGES CXX CUDA)
add_library(onnxruntime_providers_cuda MODULE ../unit.cu)
target_include_directories(onnxruntime_providers_cuda PRIVATE "../in c")
set_target_properties(onnxruntime_providers_cuda PROPERTIES CUDA_ARCHITECTURES 80)
add_executable(onnxruntime_provider_test ../test.cc)
"""
    sources = {"unit.cu": "#include <d.h>\n__global__ void k() {}\n", "in c/d.h": "", "test.cc": "int main() {}\n"}
    project = Project(tmp_path / "ort", "Unix Makefiles", lists, sources).configure().build()
    checkout = project.checkout()
    (unit,) = checkout.units
    assert unit.statement.command[1:] == project.compiles[str(unit.object)].words
    line = unit.compile_line({})
    assert line.language == "CUDA"
    assert os.path.basename(line.compiler) == "nvcc"
    assert [os.path.basename(folder) for folder in line.search.angle] == ["in c"]
    assert Toolchain(project.build_dir).compilers["CUDA"].name == "nvcc"
    closure = Resolver(Toolchain(project.build_dir).system_folders, (str(project.root),)).closure(
        unit.source, line.search.quote, line.search.angle, line.search.forced, line.search.defines, line.search.system)
    assert closure.files == {os.path.realpath(project.root / "in c/d.h")}


def test_a_build_directory_without_a_provider_is_refused(tmp_path: Path) -> None:
    lists = "cmake_minimum_required(VERSION 3.20)\nproject(none LANGUAGES CXX)\nadd_executable(x ../test.cc)\n"
    project = Project(tmp_path / "ort", "Ninja", lists, {"test.cc": ""}).configure()
    with pytest.raises(UserError, match=r"link no libonnxruntime_providers_cuda\.so") as told:
        project.checkout()
    assert "build.sh" in (told.value.mend or "")


def test_a_generator_that_is_not_known_is_refused(weird: Project) -> None:
    location = weird.location
    cache = location.cache
    entries = {**cache.entries, "CMAKE_GENERATOR": "Xcode"}
    other = Location(location.ort_root, location.build_dir, type(cache)(cache.path, entries))
    with pytest.raises(UserError, match="'Xcode'"):
        read_checkout(other, "auto", "onnxruntime_provider_test")
