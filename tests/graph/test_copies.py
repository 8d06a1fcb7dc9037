"""Copies of the provider that a build of the provider alone leaves old: told at link 3, without deciding it."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
import time
import zipfile
from pathlib import Path
from typing import Any

from tasks.provider_copies import old_copies
from tasks.settings import load
from tasks.survey import read_survey
from tests.support import Tree, run

NAME = "libonnxruntime_providers_cuda.so"


def told(document: dict[str, Any]) -> list[str]:
    assert document["verdict"] == "fresh"
    return [line for line in document["links"][2]["evidence"] if line.startswith("old copy")]


def package_copy(tree: Tree) -> Path:
    """The Python package's copy, as the module's link makes it."""
    copy = tree.build_dir / "onnxruntime" / "capi" / NAME
    shutil.copy(tree.build_dir / NAME, copy)
    return copy


def test_the_python_package_s_copy_is_old_after_an_edit_and_its_target_is_named(tree: Tree) -> None:
    copy = package_copy(tree)
    assert told(tree.judge()) == []
    tree.edit()
    done = tree.doit("verify")
    assert done.status == 0, done.text
    for document in (tree.report(), tree.judge()):
        (line,) = told(document)
        assert line.startswith(f"old copy: {copy}: target onnxruntime_pybind11_state copies it, only when it links")
    # What the target itself does not do, the command does.
    assert tree.make("onnxruntime_pybind11_state").status == 0
    assert copy.read_bytes() != (tree.build_dir / NAME).read_bytes()
    assert run(shlex.split(line.partition("now: ")[2]), tree.root).status == 0
    assert told(tree.judge()) == []


def test_a_copy_anywhere_is_found_by_verify_and_said_to_be_no_targets(make_tree: Tree) -> None:
    package_copy(make_tree)
    stray = make_tree.build_dir / "packed" / "lib" / NAME
    stray.parent.mkdir(parents=True, exist_ok=True)
    stray.write_bytes(b"older")
    done = make_tree.doit("verify")
    assert done.status == 0, done.text
    assert [line.partition(": no target")[0] for line in told(make_tree.report())] == [f"old copy: {stray}"]
    assert told(make_tree.judge()) == [], "status looks only where copies are known to lie"
    shutil.rmtree(stray.parent.parent)


def test_a_link_to_the_provider_and_an_equal_copy_are_not_old(make_tree: Tree) -> None:
    copy = package_copy(make_tree)
    staged = make_tree.build_dir / "build" / "lib.linux-x86_64" / "onnxruntime" / "capi" / NAME
    staged.parent.mkdir(parents=True, exist_ok=True)
    staged.unlink(missing_ok=True)
    staged.symlink_to(make_tree.build_dir / NAME)
    assert told(make_tree.judge()) == []
    staged.unlink()
    staged.write_bytes(copy.read_bytes()[:-1] + b"x")
    assert told(make_tree.judge()) == [f"old copy: {staged}: build.sh --build --build_wheel stages it anew"]
    shutil.rmtree(make_tree.build_dir / "build")


def test_a_wheel_with_another_provider_is_old_and_a_damaged_one_is_left_out(make_tree: Tree) -> None:
    package_copy(make_tree)
    folder = make_tree.build_dir / "dist"
    folder.mkdir(exist_ok=True)
    content = (make_tree.build_dir / NAME).read_bytes()
    for name, packed in {"new": content, "cut": content[:-1], "other": content[:-1] + b"x"}.items():
        with zipfile.ZipFile(folder / f"{name}.whl", "w") as archive:
            archive.writestr(f"onnxruntime/capi/{NAME}", packed)
    (folder / "damaged.whl").write_bytes(b"PK")
    assert told(make_tree.judge()) == [f"old copy in {folder / name}.whl: build.sh --build --build_wheel packs it anew"
                                       for name in ("cut", "other")]
    shutil.rmtree(folder)


def test_what_a_wheel_holds_is_read_once_until_it_or_the_provider_changes(make_tree: Tree) -> None:
    settings = load(make_tree.root, make_tree.environment(), {}, make_tree.root)
    provider = make_tree.build_dir / NAME
    wheels = {name: make_tree.build_dir / "dist" / f"{name}.whl" for name in ("same", "other", "damaged")}
    wheels["same"].parent.mkdir(exist_ok=True)

    def pack(name: str, content: bytes) -> None:
        with zipfile.ZipFile(wheels[name], "w") as archive:
            archive.writestr(f"onnxruntime/capi/{NAME}", content)

    content = provider.read_bytes()
    pack("same", content)
    pack("other", content[:-1] + bytes([content[-1] ^ 1]))
    wheels["damaged"].write_bytes(b"PK")
    read: set[str] = set()
    sys.addaudithook(lambda event, arguments: read.add(os.path.basename(os.fsdecode(arguments[0])))
                     if event == "open" and isinstance(arguments[0], (str, bytes)) else None)

    def look() -> tuple[list[str], set[str]]:
        """Wheels that are told as old, and which of these files were read."""
        read.clear()
        told = old_copies(read_survey(settings, {}), everywhere=False)
        old = [line.split()[3].removesuffix(":") for line in told if ".whl" in line]
        return old, read & {NAME, *(wheel.name for wheel in wheels.values())}

    time.sleep(0.05)
    assert look() == ([str(wheels["other"])], {NAME, "same.whl", "other.whl", "damaged.whl"})
    assert look() == ([str(wheels["other"])], set())
    pack("other", content)
    time.sleep(0.05)
    assert look() == ([], {NAME, "other.whl"})
    os.utime(provider)
    time.sleep(0.05)
    assert look()[1] == {NAME, "same.whl", "other.whl", "damaged.whl"}
    shutil.rmtree(wheels["same"].parent)


def test_a_copy_that_changed_under_its_old_time_is_compared_again(make_tree: Tree) -> None:
    copy = package_copy(make_tree)
    time.sleep(0.05)
    assert told(make_tree.judge()) == told(make_tree.judge()) == []
    stat, content = copy.stat(), copy.read_bytes()
    copy.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    os.utime(copy, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    assert len(told(make_tree.judge())) == 1
    package_copy(make_tree)
