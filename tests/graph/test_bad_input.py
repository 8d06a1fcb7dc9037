"""What the outside world gets wrong is told in one to three lines with the command that mends it."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support import FMHA, MINIORT, PROJECT, Run, Tree, run


def doit(*arguments: str, env: Mapping[str, str], cwd: Path = PROJECT) -> Run:
    tree = Tree.__new__(Tree)
    return run(Tree.words(tree, *arguments), cwd, {"FMHA_CONFIG": "", **env})


def told(env: Mapping[str, str], *arguments: str, others: bool = False) -> str:
    """The error of a rebuild: exit 1, at most three lines, no traceback; `others` tries `list` and `help` too."""
    done = doit("rebuild_fmha", *arguments, env=env)
    assert done.status == 1, done.text
    assert "Traceback" not in done.text
    lines = [line for line in done.text.splitlines() if line and not line.startswith((".  ", "-- "))]
    assert 1 <= len(lines) <= 3, done.text
    for command in (("list",), ("help",), ("help", "verify")) if others else ():
        other = doit(*command, env=env)
        assert other.status == 0, other.text
        assert "Traceback" not in other.text
    return "\n".join(lines)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout without a build directory."""
    root = tmp_path_factory.mktemp("bad") / "ort"
    shutil.copytree(MINIORT, root)
    return root


def cache(root: Path, name: str, home: Path | None = None, **entries: str) -> Path:
    """A build directory that is configured as far as its cache goes."""
    folder = root / "build" / "Linux" / name
    folder.mkdir(parents=True)
    values = {"onnxruntime_USE_CUDA:BOOL": "ON", "CMAKE_GENERATOR:INTERNAL": "Unix Makefiles",
              "CMAKE_HOME_DIRECTORY:INTERNAL": str(home or root / "cmake"),
              "CMAKE_CACHEFILE_DIR:INTERNAL": str(folder), "CMAKE_BUILD_TYPE:STRING": name}
    values |= {key.replace("__", ":"): value for key, value in entries.items()}
    (folder / "CMakeCache.txt").write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return folder


@pytest.fixture
def builds(checkout: Path) -> Path:
    shutil.rmtree(checkout / "build", ignore_errors=True)
    return checkout


def test_no_checkout(tmp_path: Path) -> None:
    assert "ort_root=" in told({"FMHA_ORT_ROOT": str(tmp_path)}, others=True)


def test_a_checkout_is_found_from_a_folder_inside_it(make_tree: Tree) -> None:
    done = run([*make_tree.words("-f", str(PROJECT / "dodo.py"), "status")], make_tree.root / FMHA)
    assert done.status == 0, done.text
    assert f"checkout  {make_tree.root}" in done.out


def test_no_checkout_above_the_folder_that_doit_was_started_in(tmp_path: Path) -> None:
    done = run(["python3", "-m", "doit", "-f", PROJECT / "dodo.py", "status"], tmp_path)
    assert done.status == 1
    assert "ort_root=" in done.text


def test_no_build_directory(builds: Path) -> None:
    assert "build.sh" in told({"FMHA_ORT_ROOT": str(builds)}, others=True)
    assert not (builds / "build").exists()


def test_several_build_directories_are_listed(builds: Path) -> None:
    first, second = cache(builds, "Debug"), cache(builds, "Release")
    text = told({"FMHA_ORT_ROOT": str(builds)}, others=True)
    assert str(first) in text
    assert str(second) in text
    assert "build_dir=" in text


def test_a_build_directory_of_another_checkout_is_refused(builds: Path, tmp_path: Path) -> None:
    folder = cache(builds, "Release", home=tmp_path / "other" / "cmake")
    for env in ({}, {"FMHA_BUILD_DIR": str(folder)}):
        assert str(tmp_path / "other") in told({"FMHA_ORT_ROOT": str(builds), **env})
    assert not (folder / ".fmha").exists()


def test_a_build_directory_without_cuda(builds: Path) -> None:
    folder = cache(builds, "Release", onnxruntime_USE_CUDA__BOOL="OFF")
    assert "--use_cuda" in told({"FMHA_ORT_ROOT": str(builds)})
    assert not (folder / ".fmha").exists()


def test_memory_efficient_attention_switched_off(builds: Path) -> None:
    cache(builds, "Release", onnxruntime_USE_MEMORY_EFFICIENT_ATTENTION__BOOL="OFF")
    assert "onnxruntime_USE_MEMORY_EFFICIENT_ATTENTION=ON" in told({"FMHA_ORT_ROOT": str(builds)})


def test_a_build_directory_that_was_configured_but_holds_no_build_files(builds: Path) -> None:
    cache(builds, "Release")
    assert "libonnxruntime_providers_cuda.so" in told({"FMHA_ORT_ROOT": str(builds)}, others=True)


def test_another_generator(builds: Path) -> None:
    cache(builds, "Release", CMAKE_GENERATOR__INTERNAL="Xcode")
    assert "Xcode" in told({"FMHA_ORT_ROOT": str(builds)})


@pytest.mark.parametrize(("text", "expected"), [
    ("ort_root = ", "TOML"),
    ("ort_rot = 'x'", "ort_root"),
    ("jobs = 'four'", "jobs"),
    ("jobs = true", "jobs"),
    ("jobs = 0", "jobs"),
    ("headers = 'x.h'", "headers"),
    ("headers = []", "headers"),
    ("force = 'push'", "touch"),
    ("dry_run = 1", "dry_run"),
    ("[expected_paths]\n'*MEA*' = 'fast'", "mea"),
])
def test_a_wrong_settings_file(tmp_path: Path, text: str, expected: str) -> None:
    config = tmp_path / "fmha.toml"
    config.write_text(text)
    message = told({"FMHA_CONFIG": str(config)})
    assert expected in message
    assert str(config) in message


def test_a_settings_file_that_is_not_there(tmp_path: Path) -> None:
    assert "missing.toml" in told({"FMHA_CONFIG": str(tmp_path / "missing.toml")}, others=True)


def test_an_unknown_key_on_the_command_line() -> None:
    assert "`jobs`" in told({}, "job=4")


def test_a_misspelt_variable() -> None:
    assert "`build_dir`" in told({"FMHA_BULID_DIR": "/x"})


def test_a_glob_that_matches_no_header(make_tree: Tree) -> None:
    message = told(make_tree.environment({"FMHA_HEADERS": "onnxruntime/nothing/*.h"}), others=True)
    assert "onnxruntime/nothing/*.h" in message


def test_headers_that_no_unit_includes(make_tree: Tree) -> None:
    message = told(make_tree.environment({"FMHA_HEADERS": "onnxruntime/test/**/*.h"}))
    assert "includes a watched header" in message


@pytest.mark.parametrize("command", ["/nowhere/build", "not-a-program-at-all"])
def test_a_build_command_that_does_not_exist(make_tree: Tree, command: str) -> None:
    make_tree.edit()
    done = make_tree.doit("rebuild_fmha", env={"FMHA_BUILD_COMMAND": command})
    assert done.status == 1
    assert "build_command" in done.text
    assert command in done.text


def test_a_build_script_that_is_not_executable(make_tree: Tree) -> None:
    make_tree.edit()
    script = make_tree.root / "build.sh"
    script.chmod(0o644)
    try:
        done = make_tree.doit("rebuild_fmha")
        assert done.status == 1
        assert "chmod +x" in done.text
    finally:
        script.chmod(0o755)


def test_a_missing_test_binary(make_tree: Tree) -> None:
    done = make_tree.doit("test_mea", "test_binary=onnxruntime_no_such_test")
    assert done.status == 1
    assert "onnxruntime_provider_test" in done.text, "those that are there are named"


def test_a_build_directory_of_somebody_else_is_not_run(make_tree: Tree) -> None:
    if os.getuid() != 0:
        pytest.skip("giving a directory away needs root")
    make_tree.edit()
    os.chown(make_tree.build_dir, 12345, 12345)
    try:
        done = make_tree.doit("verify")
        assert done.status == 1
        assert "belongs to user 12345" in done.text
        assert make_tree.verdict() == "stale", "looking is free"
    finally:
        os.chown(make_tree.build_dir, 0, 0)


def test_looking_writes_nothing(tmp_path: Path) -> None:
    tree = Tree(tmp_path / "tree", defines=["MINIORT_HOST_ONLY=ON"])
    tree.configure()
    before = sorted(path for path in tree.root.rglob("*"))
    for arguments in (("status",), ("-s", "verify"), ("list",), ("info", "verify"), ("help", "verify")):
        tree.doit(*arguments)
    assert sorted(path for path in tree.root.rglob("*")) == before


def test_the_error_of_a_document_is_a_document(tmp_path: Path) -> None:
    import json

    for task in ("status", "verify", "rebuild_fmha"):
        done = run(["python3", "-m", "doit", task, "--json"], PROJECT, {"FMHA_ORT_ROOT": str(tmp_path)})
        assert done.status == 1
        document = json.loads(done.out)
        assert document["task"] == task
        assert "not an ONNX Runtime checkout" in document["error"][0]


