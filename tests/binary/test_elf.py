"""The ELF tables, with pyelftools as the second opinion."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest

from tasks.binary.elf import read_elf
from tasks.binary.source import memory_source, open_source
from tests.binary.toolkit import run

elffile = pytest.importorskip("elftools.elf.elffile")


def _agree(content: bytes) -> int:
    """Compare all tables with pyelftools'; the number of relocations that were compared."""
    elf = read_elf(memory_source(Path("x"), content, "x"))
    theirs = elffile.ELFFile(io.BytesIO(content))
    sections = list(theirs.iter_sections())
    assert [(s.name, s.flags, s.address, s.offset, s.size, s.link, s.info, s.alignment) for s in elf.sections] == [
        (s.name, s["sh_flags"], s["sh_addr"], s["sh_offset"], s["sh_size"], s["sh_link"], s["sh_info"],
         s["sh_addralign"]) for s in sections]
    table = theirs.get_section_by_name(".symtab")
    symbols = list(table.iter_symbols()) if table else []
    assert [(s.name, s.value, s.size) for s in elf.symbols()] == [
        (s.name, s["st_value"], s["st_size"]) for s in symbols]
    ours = [(target.name, r.offset, r.type, r.symbol, r.addend) for target, found in elf.relocations() for r in found]
    assert ours == [(sections[s["sh_info"]].name, r["r_offset"], r["r_info_type"], r["r_info_sym"],
                     r["r_addend"] if s["sh_type"] == "SHT_RELA" else 0)
                    for s in sections if s["sh_type"] in ("SHT_REL", "SHT_RELA") for r in s.iter_relocations()]
    return len(ours)


def test_an_object_is_read_as_pyelftools_reads_it(tmp_path: Path) -> None:
    source = tmp_path / "x.cc"
    source.write_text("#include <string>\nstatic int n; int* p = &n;\n"
                      "std::string f(int i) { return std::to_string(i); }\n")
    run("g++", "-g", "-ffunction-sections", "-c", source, "-o", tmp_path / "x.o")
    assert _agree((tmp_path / "x.o").read_bytes()) > 100


def test_a_linked_file_is_read_as_pyelftools_reads_it() -> None:
    import math

    assert _agree(Path(sys.executable).resolve().read_bytes()) > 0
    if library := getattr(math, "__file__", None):
        assert _agree(Path(library).read_bytes()) > 10


def test_an_object_of_more_sections_than_the_header_can_count_is_read(tmp_path: Path) -> None:
    source = tmp_path / "many.s"
    source.write_text("".join(f'.section .s{n}, "a"\n.byte 1\n' for n in range(66000)))
    run("as", source, "-o", tmp_path / "many.o")
    with open_source(tmp_path / "many.o") as (opened, _):
        elf = read_elf(opened)
    assert elf.sections[-1].name == ".shstrtab"
    assert len(elf.sections) > 66000
