"""Damaged files: an error for the user or a right answer, in bounded time and memory. Never anything else."""

from __future__ import annotations

import os
import resource
import struct
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tasks.binary.containment import contains
from tasks.binary.fatbin import BadFatbin, payload
from tasks.binary.fingerprint import fingerprint
from tasks.binary.image import DeviceImage, device_image
from tasks.binary.kernels import kernels
from tests.binary import synthetic as syn
from tests.binary.toolkit import ARCHS, SOURCE, Toolkit

# FUZZ_EXAMPLES=100000 makes that many inputs a test.
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES", "60"))
FUZZ = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None)

SMALL = syn.library_with(
    syn.container(syn.entry(name=b"k.cu"), syn.packed(b".version 9.0\n.visible .entry k()\n{\nret;\n}\n")),
    syn.container(syn.entry(sm=90, flags=syn.ACCELERATED)), syn.container())


def _check(image: DeviceImage, size: int) -> None:
    """What must hold for every image that was not refused."""
    for container in image.containers:
        assert 0 <= container.offset <= container.offset + container.size <= size
        at = container.offset + 16
        for entry in container.entries:
            assert at + 64 <= entry.offset
            at = entry.offset + entry.size
        assert at == container.offset + container.size, "an entry was left out"
    with image.open() as source:
        for container in image.containers:
            assert source.read(container.offset, 4) == struct.pack("<I", 0xBA55ED50)


def _examine(path: Path, whole: DeviceImage) -> None:
    """Everything that the project asks of a file."""
    started = time.perf_counter()
    size = path.stat().st_size
    try:
        image = device_image(path)
        _check(image, size)
        found = contains(image, {"whole": whole})["whole"]
        if found.status == "contained":
            _hold(image, whole)
        for ask in (fingerprint, lambda path: kernels(device_image(path))):
            with suppress(BadFatbin):
                ask(path)
        with image.open() as source:
            for entry in (entry for container in image.containers for entry in container.entries):
                with suppress(BadFatbin):
                    assert len(payload(source, entry)) <= 1 << 30
    except BadFatbin as error:
        assert error.path == path  # noqa: PT017
    assert time.perf_counter() - started < 5


def _hold(image: DeviceImage, whole: DeviceImage) -> None:
    """Every container of `whole` lies in the image, byte for byte."""
    content = image.path.read_bytes()
    other = whole.path.read_bytes()
    for container in whole.containers:
        assert other[container.offset:container.offset + container.size] in content


@st.composite
def damage(draw: st.DrawFn, content: bytes, places: list[int]) -> bytes:
    """Some bytes overwritten, with values that break sizes; sometimes a cut or a hole."""
    damaged = bytearray(content)
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.one_of(st.integers(0, len(damaged) - 1), st.sampled_from(places)))
        value = draw(st.sampled_from([b"\0", b"\xff", b"\x01", b"\x7f" * 8, b"\xff" * 8, b"\0" * 8, b"\x80\0\0\0",
                                      draw(st.binary(min_size=1, max_size=8))]))
        damaged[at:at + len(value)] = value[:len(damaged) - at]
    if draw(st.integers(0, 9)) == 0:
        del damaged[draw(st.integers(0, len(damaged) - 1)):]
    return bytes(damaged)


def _headers(image: DeviceImage, content: bytes) -> list[int]:
    """Offsets worth damaging: the ELF header, section headers, containers' and entries' headers."""
    table = struct.unpack_from("<Q", content, 40)[0]
    places = [*range(64), *range(table, len(content) - 8, 8)]
    for container in image.containers:
        places += range(container.offset, container.offset + 16)
        for entry in container.entries:
            places += range(entry.offset - 72, entry.offset + 64)
    return [place for place in places if 0 <= place < len(content)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fuzz")


def _fuzz(content: bytes, folder: Path) -> None:
    (folder / "whole").write_bytes(content)
    whole = device_image(folder / "whole")
    places = _headers(whole, content)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    @FUZZ
    @given(damage(content, places))
    def examine(damaged: bytes) -> None:
        path = folder / "damaged"
        path.write_bytes(damaged)
        _examine(path, whole)

    examine()
    # KiB on Linux.
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000


def test_a_damaged_library_is_refused_or_read_right(folder: Path) -> None:
    _fuzz(SMALL, folder)


def test_random_bytes_are_refused_or_read_right(folder: Path) -> None:
    (folder / "whole").write_bytes(SMALL)
    whole = device_image(folder / "whole")

    @FUZZ
    @given(st.binary(max_size=400), st.sampled_from([b"", b"\x7fELF\2\1\1", b"!<arch>\n", b"!<thin>\n", SMALL[:64]]))
    def examine(content: bytes, start: bytes) -> None:
        (folder / "damaged").write_bytes(start + content)
        _examine(folder / "damaged", whole)

    examine()


@pytest.mark.cuda
@pytest.mark.parametrize("mode", [ARCHS, ("-dc", "-compress-mode", "none", "-arch=sm_80"), ("-G", "-arch=sm_80")],
                         ids=["plain", "-dc", "-G"])
def test_a_damaged_object_of_nvcc_is_refused_or_read_right(toolkit: Toolkit, folder: Path,
                                                           mode: tuple[str, ...]) -> None:
    _fuzz(toolkit.compile(SOURCE, *mode).read_bytes(), folder)


@pytest.mark.cuda
def test_a_damaged_cubin_is_refused_or_read_right(toolkit: Toolkit) -> None:
    """Uncompressed, so that the damage reaches its tables and not only the decompression."""
    from tasks.binary.cubin import read_cubin
    from tasks.binary.source import memory_source

    image = device_image(toolkit.compile(SOURCE, "-dc", "-compress-mode", "none", "-arch=sm_80"))
    with image.open() as source:
        content = next(payload(source, e) for c in image.containers for e in c.entries if e.kind == "elf")
    places = _tables(content)

    @FUZZ
    @given(damage(content, places))
    def examine(damaged: bytes) -> None:
        try:
            cubin = read_cubin(memory_source(Path("x"), damaged, "cubin"))
        except BadFatbin:
            return
        assert sum(len(f.code) for f in cubin.functions) <= len(damaged) * len(cubin.functions)

    examine()


def _tables(content: bytes) -> list[int]:
    table = struct.unpack_from("<Q", content, 40)[0]
    return [place for place in [*range(64), *range(table, len(content))] if place < len(content)]
