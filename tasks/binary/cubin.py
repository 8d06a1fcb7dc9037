"""What is in one cubin: functions with their code, relocations and resources, and data. Compares nothing.

Layout: measured against `cuobjdump -elf` and `-res-usage` of CUDA 13. A function is the section
`.text.<mangled>`; `.nv.info` holds records of u8 format, u8 attribute, u16 value or size.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from tasks.binary.elf import ALLOC, RELOCATABLE, Elf, Section, Symbol, read_elf
from tasks.binary.source import Source

__all__ = ["Cubin", "Datum", "Function", "Reference", "read_cubin"]

_FUNCTION, _SECTION_SYMBOL = 2, 3  # symbol types STT_*
_OBJECTS = (1, 13)  # STT_OBJECT; STT_CUDA_OBJECT in relocatable cubins
_WEAK = 2  # STB_WEAK
_ENTRY = 0x10  # st_other STO_CUDA_ENTRY
_SIZED = 4  # record format EIFMT_SVAL
_PARAM_CBANK, _EXTERNS, _FRAME_SIZE, _MIN_STACK_SIZE, _REGCOUNT = 0x0A, 0x0F, 0x11, 0x12, 0x2F
_MACHINE = 190  # EM_CUDA
# Debug information, tables of indices, and Mercury (the same code again, in the form newer chips are finalised from).
_NO_CODE = (".debug_", ".nv_debug", ".note.", ".symtab", ".strtab", ".shstrtab", ".nv.callgraph", ".nv.prototype",
            ".nv.merc", ".nv.capmerc", ".nv.info", ".nv.rel.action", ".rel.", ".rela.", ".text.")
_INITIALISED = (".nv.constant3", ".nv.global.init")  # __constant__ and __device__ variables, string literals
_OF_FUNCTION = (".nv.constant0.", ".nv.shared.", ".nv.local.", ".nv.constant2.")


@dataclass(frozen=True)
class Reference:
    """A relocation by name: `offset` in bytes in its section."""

    offset: int
    type: int
    symbol: str
    addend: int


@dataclass(frozen=True)
class Function:
    """A kernel (`entry`) or a device function. Sizes in bytes; `shared` is None until the device link decides it.

    `weak`: a template's instance or an inline function, which other objects may hold as well.
    `attached` are the sections that belong to it alone (parameters, shared and local memory): name,
    size, content. `info` are its `.nv.info` records without symbol indices.
    """

    name: str
    entry: bool
    weak: bool
    code: bytes
    references: tuple[Reference, ...]
    registers: int | None
    stack: int | None
    shared: int | None
    attached: tuple[tuple[str, int, bytes], ...]
    info: bytes


@dataclass(frozen=True)
class Datum:
    """A variable, constant or string literal: its section, bytes, and the references in them."""

    name: str
    section: str
    weak: bool
    content: bytes
    references: tuple[Reference, ...]


@dataclass(frozen=True)
class Cubin:
    """All of a cubin that the GPU runs or reads.

    `sections` are the data sections that belong to no function: name, flags, size, content,
    references; `variables` all device variables: name, section, value, size.
    """

    relocatable: bool
    functions: tuple[Function, ...]
    data: tuple[Datum, ...]
    sections: tuple[tuple[str, int, int, bytes, tuple[Reference, ...]], ...]
    variables: tuple[tuple[str, str, int, int], ...]


def _records(elf: Elf, section: Section) -> Iterator[tuple[int, bytes, bytes]]:
    """(attribute, raw record, its payload) of a `.nv.info` section."""
    raw = elf.data(section)
    at = 0
    while at < len(raw):
        if at + 4 > len(raw):
            raise elf.source.bad(f"{section.name} cut short", section.offset + at)
        form, attribute, value = struct.unpack_from("<BBH", raw, at)
        end = at + 4 + (value if form == _SIZED else 0)
        if end > len(raw):
            raise elf.source.bad(f"record runs over the end of {section.name}", section.offset + at)
        yield attribute, raw[at:end], raw[at + 4:end] if form == _SIZED else raw[at + 2:end]
        at = end


def _resources(elf: Elf, symbols: list[Symbol]) -> tuple[dict[str, int], dict[str, int]]:
    """Registers and stack (bytes, with that of the functions it calls where that is known) by function."""
    registers: dict[str, int] = {}
    frame: dict[str, int] = {}
    stack: dict[str, int] = {}
    tables = {_REGCOUNT: registers, _FRAME_SIZE: frame, _MIN_STACK_SIZE: stack}
    for section in elf.named(".nv.info"):
        for attribute, _, data in _records(elf, section):
            if attribute in tables and len(data) == 8:
                index, value = struct.unpack("<II", data)
                if index >= len(symbols):
                    raise elf.source.bad(".nv.info names no symbol", section.offset)
                tables[attribute][symbols[index].name] = value
    return registers, {**frame, **stack}


def _own_info(elf: Elf, section: Section) -> bytes:
    """A function's records without those that hold indices: equal for equal code, whatever else is in the cubin."""
    kept = [raw[:4] + data[4:] if attribute == _PARAM_CBANK else raw
            for attribute, raw, data in _records(elf, section) if attribute != _EXTERNS]
    return b"".join(kept)


def _references(elf: Elf, symbols: list[Symbol]) -> dict[int, list[Reference]]:
    """Relocations by the section's index, symbols by name, in the order of their offsets."""
    found: dict[int, list[Reference]] = defaultdict(list)
    for section, relocations in elf.relocations():
        if not section.flags & ALLOC:
            continue
        for offset, kind, index, addend in relocations:
            if index >= len(symbols):
                raise elf.source.bad(f"relocation of {section.name} names no symbol", section.offset)
            symbol = symbols[index]
            name = symbol.name
            if symbol.kind == _SECTION_SYMBOL and symbol.section < len(elf.sections):
                name = elf.sections[symbol.section].name
            found[section.number].append(Reference(offset, kind, name, addend))
    for listed in found.values():
        listed.sort(key=lambda reference: (reference.offset, reference.type, reference.symbol, reference.addend))
    return found


def _data(elf: Elf, symbols: list[Symbol], references: dict[int, list[Reference]]) -> Iterator[Datum]:
    contents: dict[int, bytes] = {}
    for symbol in symbols:
        if symbol.kind not in _OBJECTS or not 0 < symbol.section < len(elf.sections):
            continue
        section = elf.sections[symbol.section]
        if not section.name.startswith(_INITIALISED):
            continue
        if section.number not in contents:
            contents[section.number] = elf.data(section)
        end = symbol.value + symbol.size
        if content := contents[section.number][symbol.value:end]:
            inside = tuple(Reference(r.offset - symbol.value, r.type, r.symbol, r.addend)
                           for r in references.get(section.number, ()) if symbol.value <= r.offset < end)
            yield Datum(symbol.name, section.name, symbol.binding == _WEAK, content, inside)


def read_cubin(source: Source) -> Cubin:
    """Read a cubin. Raises :class:`BadFatbin` for anything malformed."""
    elf = read_elf(source)
    if elf.machine != _MACHINE:
        raise source.bad(f"is no cubin (machine {elf.machine})")
    symbols = elf.symbols()
    registers, stack = _resources(elf, symbols)
    references = _references(elf, symbols)
    entries = {symbol.name for symbol in symbols if symbol.kind == _FUNCTION and symbol.other & _ENTRY}
    weak = {symbol.name for symbol in symbols if symbol.kind == _FUNCTION and symbol.binding == _WEAK}
    relocatable = elf.type == RELOCATABLE
    by_name = {section.name: section for section in elf.sections}
    functions = []
    attached_names: set[str] = set()
    for section in elf.sections:
        if not section.name.startswith(".text."):
            continue
        name = section.name[len(".text."):]
        own = [by_name[prefix + name] for prefix in _OF_FUNCTION if prefix + name in by_name]
        attached_names.update(part.name for part in own)
        info = by_name.get(f".nv.info.{name}")
        shared = by_name.get(f".nv.shared.{name}")
        functions.append(Function(
            name, name in entries, name in weak, elf.data(section), tuple(references.get(section.number, ())),
            registers.get(name), stack.get(name), None if relocatable else shared.size if shared else 0,
            tuple((part.name[:-len(name)], part.size, elf.data(part)) for part in own),
            _own_info(elf, info) if info else b""))
    rest = tuple((section.name, section.flags, section.size, elf.data(section),
                  tuple(references.get(section.number, ()))) for section in elf.sections
                 if section.type and not section.name.startswith(_NO_CODE) and section.name not in attached_names)
    variables = tuple(sorted((symbol.name, elf.sections[symbol.section].name, symbol.value, symbol.size)
                             for symbol in symbols
                             if symbol.kind in _OBJECTS and 0 < symbol.section < len(elf.sections)
                             and not elf.sections[symbol.section].name.startswith(_OF_FUNCTION)))
    return Cubin(relocatable, tuple(functions), tuple(_data(elf, symbols, references)), rest, variables)
