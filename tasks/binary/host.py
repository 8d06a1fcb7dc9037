"""A digest of an object's host code: the same for two compiles of equal code. Knows no device code."""

from __future__ import annotations

from tasks.binary.archive import is_archive, members
from tasks.binary.code import digest
from tasks.binary.elf import ALLOC, Elf, Section, read_elf
from tasks.binary.names import stable, stable_bytes
from tasks.binary.source import Source

__all__ = ["host_digest"]

_SECTION_SYMBOL = 3  # STT_SECTION
_DEVICE = (".nv_fatbin", "__nv_relfatbin", "__nv_module_id")


def _counts(section: Section) -> bool:
    return bool(section.flags & ALLOC) and not section.name.startswith((*_DEVICE, ".note", ".comment"))


def _object(elf: Elf) -> str:
    symbols = elf.symbols()
    names = []
    for symbol in symbols:
        home = elf.sections[symbol.section].name if 0 < symbol.section < len(elf.sections) else str(symbol.section)
        names.append(stable(home if symbol.kind == _SECTION_SYMBOL else f"{symbol.name} in {home}"))
    parts: list[object] = []
    for section in elf.sections:
        if _counts(section):
            parts += [stable(section.name), section.type, section.flags, section.size, stable_bytes(elf.data(section))]
    for target, relocations in elf.relocations():
        if _counts(target):
            parts.append(stable(target.name))
            for offset, kind, index, addend in relocations:
                if index >= len(symbols):
                    raise elf.source.bad(f"relocation of {target.name} names no symbol", target.offset)
                parts.append((offset, kind, names[index], addend))
    parts += sorted((name, symbol.binding, symbol.value, symbol.size)
                    for name, symbol in zip(names, symbols, strict=True)
                    if 0 < symbol.section < len(elf.sections) and _counts(elf.sections[symbol.section]))
    return digest(parts)


def host_digest(source: Source) -> str:
    """Hexadecimal digest of an object's (or static library's) allocated host sections, symbols and relocations.

    Left out are debug information, the temporary file's name in the symbol table and path hashes in
    names. Raises :class:`BadFatbin`.
    """
    if is_archive(source):
        return digest([_object(read_elf(member)) for member in members(source)])
    return _object(read_elf(source))
