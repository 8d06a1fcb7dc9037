"""Build directories of several configurations, and of none that has a name."""

from __future__ import annotations

from pathlib import Path

from tests.support import Tree, run


def configured(root: Path, folder: str, generator: str, *defines: str) -> Tree:
    tree = Tree(root, generator)
    tree.build_dir = root / "build" / folder
    done = run(["cmake", "-S", root / "cmake", "-B", tree.build_dir, "-G", generator, "-Donnxruntime_USE_CUDA=ON",
                "-DMINIORT_HOST_ONLY=ON", "-DMINIORT_GTEST=OWN", *defines], root)
    assert done.status == 0, done.text
    return tree


def test_the_configuration_that_a_folder_of_several_is_named_after_is_judged_and_built(tmp_path: Path) -> None:
    # CMake takes no notice of a build type here.
    tree = configured(tmp_path / "ort", "Linux/Release", "Ninja Multi-Config", "-DCMAKE_BUILD_TYPE=Debug")
    assert tree.doit("verify").status == 0
    tree.edit()
    assert tree.verdict() == "stale"
    assert tree.doit("verify").status == 0
    assert tree.verdict() == "fresh"
    assert [path.parent.name for path in tree.build_dir.rglob("libonnxruntime_providers_cuda.so")] == ["Release"]


def test_a_folder_of_several_configurations_that_names_none_is_refused_in_words(tmp_path: Path) -> None:
    tree = configured(tmp_path / "ort", "several", "Ninja Multi-Config")
    for task in ("status", "verify"):
        done = tree.doit(task)
        assert done.status == 1
        assert "several configurations (Ninja Multi-Config)" in done.text


def test_a_folder_without_a_build_type_is_built_by_cmake(tmp_path: Path) -> None:
    tree = configured(tmp_path / "ort", "plain", "Ninja")
    done = tree.doit("verify")
    assert done.status == 0, done.text
