"""Compiler caches: a forced recompile is one, and what they did is told. With the real ccache and sccache."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tasks.builder.launcher import Launchers, launcher_of, launchers_of, what_ccache_did
from tests.support import Tree

needs_ccache = pytest.mark.skipif(shutil.which("ccache") is None, reason="no ccache on PATH")
needs_sccache = pytest.mark.skipif(shutil.which("sccache") is None, reason="no sccache on PATH")


def stop_sccache(port: str) -> None:
    subprocess.run(["sccache", "--stop-server"], env={**os.environ, "SCCACHE_SERVER_PORT": port}, check=False,
                   capture_output=True)


@pytest.mark.parametrize(("line", "expected"), [
    ("ccache /usr/local/bin/nvcc -c x.cu", "ccache"),
    ("/opt/bin/sccache nvcc -c x.cu", "/opt/bin/sccache"),
    ("cmake -E env CCACHE_DIR=/x ccache c++ -c x.cc", "ccache"),
    ("nvcc -I/src/ccache/include -c x.cu", None),
])
def test_a_launcher_is_seen_in_front_of_the_compiler(line: str, expected: str | None) -> None:
    assert launcher_of(line.split()) == expected


def test_a_launcher_behind_the_compilers_name_is_seen() -> None:
    assert launchers_of([(("/usr/lib/ccache/c++", "-c"), ["/usr/bin/ccache"])]) == {"ccache": "/usr/bin/ccache"}


def test_without_a_launcher_the_environment_is_the_users(tmp_path: Path) -> None:
    assert Launchers({}, {"A": "1"}, tmp_path, tmp_path).environ == {"A": "1"}


def test_a_users_statistics_log_is_read_from_where_the_build_began(tmp_path: Path) -> None:
    log = tmp_path / "mine"
    log.write_text("# /old.cu\ndirect_cache_hit\n")
    launchers = Launchers({"ccache": "ccache"}, {"CCACHE_STATSLOG": str(log)}, tmp_path, tmp_path)
    with log.open("a") as file:
        file.write("# /new.cu\nrecache\n# /hit.cu\npreprocessed_cache_hit\n")
    assert launchers.end() == (frozenset({"/hit.cu"}), False, ["ccache: 1 compiled anew, 1 from its cache: hit.cu"])


def test_a_missing_statistics_log_tells_nothing(tmp_path: Path) -> None:
    assert what_ccache_did(tmp_path / "none") is None


@pytest.fixture
def cached(tmp_path: Path) -> Tree:
    """A built tree behind a ccache that knows only the headers of the depfiles, which miss the watched ones."""
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache/ccache.conf").write_text("depend_mode = true\n")
    tree = Tree(tmp_path / "ort", defines=["MINIORT_HOST_ONLY=ON", "MINIORT_DEPFILE_GAP=ON",
                                           f"CMAKE_CXX_COMPILER_LAUNCHER={shutil.which('ccache')}"])
    tree.configure()
    assert tree.script("--build", "--parallel", "2", env={"CCACHE_DIR": str(tmp_path / "cache")}).status == 0
    return tree


@needs_ccache
def test_a_forced_recompile_behind_ccache_is_one_where_the_old_object_would_come_back(
        cached: Tree, tmp_path: Path) -> None:
    env = {"CCACHE_DIR": str(tmp_path / "cache")}
    old = cached.built_revisions()["fmha_sm80"]["kernel_forward"]
    new = cached.edit()
    for unit in (cached.root / "onnxruntime").rglob("fmha_sm*.cu"):
        unit.touch()
    assert cached.script("--build", "--parallel", "2", env=env).status == 0
    assert cached.built_revisions()["fmha_sm80"]["kernel_forward"] == old, "the hazard is there"
    done = cached.doit("rebuild_fmha", env=env)
    assert done.status == 0, done.text
    assert " compiled anew, 0 from its cache" in done.text
    assert cached.doit("verify", env=env).status == 0
    assert cached.built_revisions()["fmha_sm80"]["kernel_forward"] == new
    assert cached.verdict(env) == "fresh", "what the build adds to the environment is no input"
    assert cached.verdict({**env, "CCACHE_RECACHE": "1"}) == "fresh"
    assert cached.verdict({**env, "CCACHE_SLOPPINESS": "time_macros"}) == "stale"


@needs_ccache
def test_an_object_that_ccache_took_from_its_cache_all_the_same_gets_no_receipt(cached: Tree, tmp_path: Path) -> None:
    env = {"CCACHE_DIR": str(tmp_path / "cache")}
    cached.edit()
    script = tmp_path / "build"
    script.write_text(f"#!/bin/sh\nunset CCACHE_RECACHE\nexec {cached.root}/build.sh \"$@\"\n")
    script.chmod(0o755)
    done = cached.doit("rebuild_fmha", env={
        **env, "FMHA_BUILD_COMMAND": f"{script} --build_dir {{build_root}} --config {{config}} --build"})
    assert done.status == 1
    assert "from its cache: " in done.text
    assert "put an old object there" in done.text
    assert cached.verdict(env) != "fresh"


def test_an_sccache_that_cannot_be_asked_is_not_known_to_have_compiled(tmp_path: Path) -> None:
    launchers = Launchers({"sccache": str(tmp_path / "sccache")}, {}, tmp_path, tmp_path)
    assert launchers.end() == (frozenset(), False, ["sccache: asked to compile anew, and does not tell what it did"])


@needs_sccache
def test_an_sccache_that_no_compile_came_through_is_not_known_to_have_compiled(tmp_path: Path) -> None:
    # The build's own script may use another server than the one that is asked.
    sccache = str(shutil.which("sccache"))
    launchers = Launchers({"sccache": sccache}, {**os.environ, "SCCACHE_SERVER_PORT": "4396"}, tmp_path, tmp_path)
    assert launchers.end() == (frozenset(), False,
                               ["sccache: 0 compiled anew, 0 from its cache (all builds of its server)"])
    stop_sccache("4396")


@pytest.fixture
def deaf() -> Iterator[str]:
    """The port of a server that hangs up: sccache gets no statistics there."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        def hang_up() -> None:
            while True:
                try:
                    server.accept()[0].close()
                except OSError:
                    return

        thread = threading.Thread(target=hang_up)
        thread.start()
        yield str(server.getsockname()[1])
        server.shutdown(socket.SHUT_RDWR)
        thread.join()


@needs_sccache
@pytest.mark.cuda
def test_an_old_object_put_back_behind_an_sccache_that_does_not_tell_gets_no_receipt(
        tmp_path: Path, deaf: str) -> None:
    env = {"SCCACHE_DIR": str(tmp_path / "cache"), "SCCACHE_SERVER_PORT": "4398"}
    tree = Tree(tmp_path / "ort", defines=["MINIORT_DEPFILE_GAP=ON", "CMAKE_CUDA_ARCHITECTURES=80",
                                           f"CMAKE_CUDA_COMPILER_LAUNCHER={shutil.which('sccache')}"])
    kept, script = tmp_path / "kept.o", tmp_path / "build"
    try:
        tree.configure()
        assert tree.script("--build", "--parallel", "2", "--target", "onnxruntime_providers_cuda",
                           env=env).status == 0
        obj = tree.object("fmha_sm80")
        shutil.copy(obj, kept)
        script.write_text(f'#!/bin/sh\nexport SCCACHE_SERVER_PORT=4398\n"{tree.root}/build.sh" "$@" || exit\n'
                          f'cp "{kept}" "{obj}"\nexec "{tree.root}/build.sh" "$@"\n')
        script.chmod(0o755)
        tree.edit()
        env |= {"SCCACHE_SERVER_PORT": deaf, "FMHA_BUILD_COMMAND":
                f"{script} --build_dir {{build_root}} --config {{config}} --build --target onnxruntime_providers_cuda"}
        done = tree.doit("rebuild_fmha", env=env)
        assert obj.read_bytes() == kept.read_bytes(), "the edit is not in the object"
        assert done.status == 1, done.text
        assert "sccache: asked to compile anew, and does not tell what it did" in done.text
        assert re.search("fmha_sm80.*: the object has the bytes of the one before, and it cannot be told whether"
                         " sccache compiled it or restored the old one", done.text)
        units = {unit["name"]: unit["verdict"] for unit in tree.judge(env)["units"]}
        assert (units["fmha_sm80"], units["fmha_sm75"]) == ("unproven", "fresh")
    finally:
        stop_sccache("4398")


@needs_sccache
@pytest.mark.cuda
def test_a_forced_recompile_behind_sccache_is_one_though_nvccs_object_is_the_same(tmp_path: Path) -> None:
    env = {"SCCACHE_DIR": str(tmp_path / "cache"), "SCCACHE_SERVER_PORT": "4397"}
    tree = Tree(tmp_path / "ort", defines=["MINIORT_DEPFILE_GAP=ON", "CMAKE_CUDA_ARCHITECTURES=80",
                                           f"CMAKE_CUDA_COMPILER_LAUNCHER={shutil.which('sccache')}"])
    try:
        tree.configure()
        assert tree.script("--build", "--parallel", "2", "--target", "onnxruntime_providers_cuda",
                           env=env).status == 0
        tree.header("kernel_forward").write_text(tree.header("kernel_forward").read_text() + "// no change\n")
        done = tree.doit("rebuild_fmha", env=env)
        assert done.status == 0, done.text
        assert " compiled anew, 0 from its cache" in done.text
    finally:
        stop_sccache("4397")
