"""Cubins made byte by byte: what is read, and what is refused. Needs no compiler."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from tasks.binary.cubin import Cubin, read_cubin
from tasks.binary.fatbin import BadFatbin
from tasks.binary.source import memory_source
from tests.binary import synthetic as syn

CUDA = 190
KERNEL = struct.pack("<IBBHQQ", 1, 0x12, 0x10, 1, 0, 16)  # global function, entry, in section 1


def record(attribute: int, *words: int) -> bytes:
    data = struct.pack(f"<{len(words)}I", *words)
    return struct.pack("<BBH", 4, attribute, len(data)) + data


def read(*, info: bytes = b"", own: bytes = b"", relocations: bytes = b"", relocated: int = 1, strings: int = 2,
         symbols: bytes = KERNEL, machine: int = CUDA) -> Cubin:
    """A cubin with the kernel `k` in section 1, of 16 bytes."""
    content = syn.elf([
        syn.Part(".text.k", b"\x01" * 16), syn.Part(".strtab", b"\0k\0", 3, 0),
        syn.Part(".symtab", bytes(24) + symbols, 2, 0, link=strings),
        syn.Part(".nv.info", info, 0x70000000, 0), syn.Part(".nv.info.k", own, 0x70000000, 0),
        syn.Part(".rela.text.k", relocations, 4, 0, link=3, info=relocated)], kind=2, machine=machine)
    return read_cubin(memory_source(Path("x.o"), content, "cubin"))


def test_a_kernel_has_its_registers_and_the_stack_of_all_that_it_calls() -> None:
    (kernel,) = read(info=record(0x2F, 1, 40) + record(0x11, 1, 8) + record(0x12, 1, 32)).functions
    assert (kernel.name, kernel.entry, kernel.code, kernel.registers, kernel.stack, kernel.shared) == (
        "k", True, b"\x01" * 16, 40, 32, 0)


def test_the_stack_is_the_frame_where_what_it_calls_is_not_known() -> None:
    assert read(info=record(0x11, 1, 8)).functions[0].stack == 8


def test_a_relocation_is_read_with_its_symbols_name() -> None:
    (reference,) = read(relocations=struct.pack("<QQq", 4, 1 << 32 | 56, 7)).functions[0].references
    assert (reference.offset, reference.type, reference.symbol, reference.addend) == (4, 56, "k", 7)


def test_records_that_hold_indices_do_not_make_two_kernels_differ() -> None:
    one, two = (read(own=record(0x0A, n, 5) + record(0x0F, n) + record(0x17, 9)).functions[0].info for n in (1, 2))
    assert one == two
    assert one != read(own=record(0x0A, 1, 6) + record(0x17, 9)).functions[0].info


@pytest.mark.parametrize(("what", "words"), [
    ({"info": record(0x2F, 9, 40)}, "names no symbol"),
    ({"info": record(0x2F, 1, 40)[:-2]}, "runs over the end"),
    ({"own": record(0x17, 1)[:6]}, "runs over the end"),
    ({"own": b"\x04\x17"}, "cut short"),
    ({"relocations": struct.pack("<QQq", 4, 9 << 32, 0)}, "names no symbol"),
    ({"relocations": b"x" * 23}, "malformed relocation table"),
    ({"relocations": bytes(24), "relocated": 99}, "malformed relocation table"),
    ({"symbols": struct.pack("<I", 99) + KERNEL[4:]}, "outside its string table"),
    ({"symbols": KERNEL[:-1]}, "odd size"),
    ({"strings": 99}, "no string table"),
    ({"machine": 62}, "no cubin"),
])
def test_a_malformed_cubin_is_an_error_that_says(what: dict[str, object], words: str) -> None:
    with pytest.raises(BadFatbin, match=rf"x\.o: cubin: .*{words}"):
        read(**what)  # type: ignore[arg-type]
