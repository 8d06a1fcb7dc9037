"""What the walker accepts and refuses. Needs no compiler."""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable
from pathlib import Path

import lz4.block
import pytest

from tasks.binary.fatbin import BadFatbin, payload
from tasks.binary.image import DeviceImage, device_image
from tests.binary import synthetic as syn


@pytest.fixture
def read(tmp_path: Path) -> Callable[[bytes], DeviceImage]:
    def reader(content: bytes) -> DeviceImage:
        path = tmp_path / "file.o"
        path.write_bytes(content)
        return device_image(path)

    return reader


Read = Callable[[bytes], DeviceImage]


def test_every_container_and_entry_of_a_section_is_listed(read: Read) -> None:
    image = read(syn.object_with(syn.container(syn.entry(), syn.entry(sm=75)), syn.container(syn.packed(b".version"))))
    assert [[(e.kind, e.arch) for e in c.entries] for c in image.containers] == [
        [("elf", "sm_80"), ("elf", "sm_75")], [("ptx", "compute_90")]]


@pytest.mark.parametrize(("kind", "flags", "arch"), [
    (2, 0x11, "sm_90"), (2, syn.ACCELERATED, "sm_90a"), (2, syn.FAMILY, "sm_90f"), (1, 0x11, "compute_90"),
    (1, syn.ACCELERATED, "compute_90a"), (8, 0x11, "lto_90"), (16, 0x11, "other_90")])
def test_an_architecture_has_the_name_that_nvcc_gives_it(read: Read, kind: int, flags: int, arch: str) -> None:
    assert read(syn.object_with(syn.container(syn.entry(kind=kind, sm=90, flags=flags)))).archs == (arch,)


def test_relocatable_device_code_is_found_in_its_own_section(read: Read) -> None:
    image = read(syn.object_with(syn.container(syn.entry()), section="__nv_relfatbin"))
    assert [c.section for c in image.containers] == ["__nv_relfatbin"]


def test_an_object_without_device_code_has_no_containers(read: Read) -> None:
    assert read(syn.elf([syn.Part(".text", b"\x90")])).containers == ()


def test_an_entry_keeps_the_name_of_its_source(read: Read) -> None:
    assert read(syn.object_with(syn.container(syn.entry(name=b"dir/k.cu")))).containers[0].entries[0].name == "dir/k.cu"


def test_zeros_that_align_a_container_are_no_gap(read: Read) -> None:
    first = syn.container(syn.entry())
    aligned = first + bytes(-len(first) % 64) + syn.container(syn.entry(sm=75))
    assert read(syn.object_with(aligned, alignment=64)).archs == ("sm_75", "sm_80")


REFUSED = {
    "a gap between containers": syn.container(syn.entry()) + bytes(8) + syn.container(syn.entry()),
    "bytes after the last container": syn.container(syn.entry()) + b"left",
    "zeros after the last container": syn.container(syn.entry()) + bytes(32),
    "another magic": syn.container(syn.entry(), magic=0xBA55ED51),
    "another version": syn.container(syn.entry(), version=2),
    "another header size": syn.container(syn.entry(), header=24),
    "a container that runs over the section": syn.container(syn.entry(), size=1 << 40),
    "a container that ends inside its entry": syn.container(syn.entry(), size=64),
    "an entry cut short by its container": syn.container(syn.entry()[:40]),
    "an entry header smaller than it can be": syn.container(syn.entry(header=0)),
    "an entry that runs over its container": syn.container(syn.entry(size=1 << 62)),
    "an entry size that is not padded": syn.container(syn.entry(b"x" * 16, size=12)),
    "two entry sizes that are padded only together": syn.container(
        syn.entry(b"x" * 16, size=12)[:76] + syn.entry(b"x" * 16, size=4)[:68]),
    "an entry whose header is in its payload": syn.container(syn.entry(header=0, size=72)),
    "a name in the payload": syn.container(syn.entry(name=b"k.cu", name_at=72)),
    "a name outside the entry's header": syn.container(syn.entry(name=b"k.cu", name_at=1 << 31)),
    "more stored bytes than there are": syn.container(syn.entry(flags=syn.ZSTD, stored=999, unpacked=9)),
    "a compressed flag without a compressed size": syn.container(syn.entry(flags=syn.ZSTD)),
    "a compressed size without a flag": syn.container(syn.entry(stored=4, unpacked=9)),
    "two compressions at once": syn.container(syn.entry(flags=syn.ZSTD | syn.LZ4, stored=4, unpacked=9)),
    "no architecture": syn.container(syn.entry(sm=0)),
}


@pytest.mark.parametrize("what", REFUSED)
def test_the_walk_never_returns_a_shorter_list_for(read: Read, what: str) -> None:
    with pytest.raises(BadFatbin, match=r"file\.o: .* at offset 0x"):
        read(syn.object_with(REFUSED[what]))


@pytest.mark.parametrize("length", range(8, 152, 8))
def test_a_container_that_goes_on_in_the_next_section_is_cut_short(read: Read, length: int) -> None:
    whole = syn.container(syn.entry(), syn.entry(sm=75))
    assert len(whole) == 160
    with pytest.raises(BadFatbin, match="at offset 0x"):
        read(syn.elf([syn.Part(".nv_fatbin", whole[:length]), syn.Part(".rodata", whole[length:])]))


def test_zeros_are_a_gap_where_nothing_had_to_be_aligned(read: Read) -> None:
    first = syn.container(syn.entry())
    with pytest.raises(BadFatbin):
        read(syn.object_with(first + bytes(-len(first) % 64 + 64) + syn.container(syn.entry()), alignment=64))


NO_ELF = {
    "an empty file": (b"", "is empty"),
    "a text file": (b"hello, this is no object file at all\n" * 9, "is not an ELF file"),
    "a 32-bit file": (b"\x7fELF\x01\x01" + syn.elf([])[6:], "64-bit"),
    "a big-endian file": (b"\x7fELF\x02\x02" + syn.elf([])[6:], "little-endian"),
    "half a header": (syn.elf([])[:40], "cut short"),
    "no section table": (syn.elf([])[:0x28] + bytes(8) + syn.elf([])[0x30:], "no section table"),
}


@pytest.mark.parametrize("what", NO_ELF)
def test_an_error_says_what_the_file_is_instead(read: Read, what: str) -> None:
    content, words = NO_ELF[what]
    with pytest.raises(BadFatbin, match=words):
        read(content)


def test_a_file_cut_short_anywhere_is_an_error(read: Read) -> None:
    content = syn.object_with(syn.container(syn.entry(), syn.packed(b".version 9.0")))
    for length in range(0, len(content) - 1, 7):
        with pytest.raises(BadFatbin):
            read(content[:length])


def test_a_section_table_that_claims_a_million_sections_is_an_error(read: Read) -> None:
    content = bytearray(syn.elf([]))
    struct.pack_into("<H", content, 60, 0xFFFF)
    with pytest.raises(BadFatbin, match="65535 sections"):
        read(bytes(content))


def test_a_missing_file_a_folder_and_a_pipe_are_errors_for_the_user(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path, words in (("missing.o", "No such file or directory"), ("", "not a regular file"),
                        ("pipe", "not a regular file")):
        with pytest.raises(BadFatbin, match=rf"{words}\n.*rebuild_fmha"):
            device_image(tmp_path / path)


def test_a_file_replaced_after_the_walk_is_an_error_not_a_mixture(tmp_path: Path) -> None:
    path = tmp_path / "file.o"
    path.write_bytes(syn.object_with(syn.container(syn.entry())))
    image = device_image(path)
    path.with_suffix(".new").write_bytes(path.read_bytes())
    path.with_suffix(".new").replace(path)
    with pytest.raises(BadFatbin, match="replaced"), image.open():
        pass


def _containers(path: Path, number: int) -> Path:
    path.write_bytes(syn.library_with(*(syn.container(syn.entry(n.to_bytes(8, "little")), syn.entry(sm=75))
                                        for n in range(number))))
    return path


def test_ten_times_the_containers_take_ten_times_the_time_and_no_more(tmp_path: Path) -> None:
    paths = [_containers(tmp_path / f"{number}.so", number) for number in (600, 6000)]

    def once(path: Path) -> float:
        began = time.process_time()
        assert len(device_image(path).containers) == int(path.stem)
        return time.process_time() - began

    # In turn: a machine that is slow for a moment is slow for both.
    few, many = (min(times) for times in zip(*([once(path) for path in paths] for _ in range(7)), strict=True))
    # What is over ten is caches, the timer's noise and Python's collector; anything quadratic would be a hundred.
    assert many < 30 * few


# -- payloads ------------------------------------------------------------------------------------------------


def _payload(image: DeviceImage) -> bytes:
    with image.open() as source:
        return payload(source, image.containers[0].entries[0])


def test_payloads_are_decompressed(read: Read) -> None:
    text = b".version 9.0\n" * 99
    block = lz4.block.compress(text, store_size=False)
    assert _payload(read(syn.object_with(syn.container(syn.packed(text))))) == text
    assert _payload(read(syn.object_with(syn.container(
        syn.entry(block, 1, flags=syn.LZ4, stored=len(block), unpacked=len(text)))))) == text
    assert _payload(read(syn.object_with(syn.container(syn.entry(text, 1))))).rstrip(b"\0") == text


@pytest.mark.parametrize("flag", [syn.ZSTD, syn.LZ4])
@pytest.mark.parametrize("unpacked", [5, 999, 1001, 1 << 20, 1 << 29, 1 << 62])
def test_a_payload_that_is_not_what_its_header_says_is_an_error(read: Read, flag: int, unpacked: int) -> None:
    text = b"x" * 1000
    whole = syn.packed(text) if flag == syn.ZSTD else b""
    stored = struct.unpack_from("<I", whole, 16)[0] if whole else 0
    data = whole[64:64 + stored] if whole else lz4.block.compress(text, store_size=False)
    image = read(syn.object_with(syn.container(syn.entry(data, 1, flags=flag, stored=len(data), unpacked=unpacked))))
    with pytest.raises(BadFatbin, match="payload"):
        _payload(image)


# -- registration and archives -------------------------------------------------------------------------------


def test_a_linked_file_says_which_containers_are_registered(read: Read) -> None:
    one, two = syn.container(syn.entry()), syn.container(syn.entry(sm=75))
    image = read(syn.library_with(one, two, registered=[1]))
    assert image.registered == {image.containers[1].offset: 1}


def test_a_wrapper_whose_address_a_dynamic_relocation_holds_is_read(read: Read) -> None:
    content = syn.library_with(syn.container(syn.entry()))
    address = read(content).containers[0].offset
    parts = [syn.Part(".nv_fatbin", syn.container(syn.entry())), syn.Part(".nvFatBinSegment", syn.wrapper(0)),
             syn.Part(".rela.dyn", b"", 4)]
    place = syn.offset_of(syn.elf(parts, kind=3), syn.wrapper(0)) + 8
    parts[2] = syn.Part(".rela.dyn", struct.pack("<QQq", 1, 8, 1) + struct.pack("<QQq", place, 8, address), 4)
    image = read(syn.elf(parts, kind=3))
    assert image.registered == {image.containers[0].offset: 1}


def test_the_containers_that_a_device_link_made_are_told_by_their_wrappers(read: Read) -> None:
    whole, made = syn.container(syn.entry()), syn.container(syn.entry(sm=75))

    def library(first: int, second: int) -> bytes:
        return syn.elf([syn.Part(".nv_fatbin", whole + made),
                        syn.Part(".nvFatBinSegment", syn.wrapper(first) + syn.wrapper(second, version=2))], kind=3)

    start = syn.offset_of(library(0, 0), whole)
    image = read(library(start, start + len(whole)))
    assert [container.archs for container in image.device_linked] == [("sm_75",)]


def test_a_wrapper_with_another_magic_is_an_error(read: Read) -> None:
    with pytest.raises(BadFatbin, match="nvFatBinSegment"):
        read(syn.elf([syn.Part(".nvFatBinSegment", syn.wrapper(0, magic=1))], kind=3))


def _archive(*members: tuple[bytes, bytes]) -> bytes:
    text = b"!<arch>\n"
    for name, content in members:
        text += b"%-16s%-32s%-10d`\n" % (name, b"0", len(content)) + content + b"\n" * (len(content) % 2)
    return text


def test_a_static_library_has_the_containers_of_its_members_at_offsets_of_the_file(read: Read) -> None:
    one, two = syn.container(syn.entry()), syn.container(syn.packed(b".target sm_90"))
    content = _archive((b"/", b"index"), (b"one.o/", syn.object_with(one)), (b"two.o/", syn.object_with(two)))
    image = read(content)
    assert [content[c.offset:c.offset + c.size] for c in image.containers] == [one, two]
    with image.open() as source:
        assert payload(source, image.containers[1].entries[0]) == b".target sm_90"


@pytest.mark.parametrize("broken", [_archive((b"x.o/", b"no object")), _archive((b"x.o/", syn.object_with()))[:-9],
                                    b"!<arch>\n" + b"x" * 60, b"!<thin>\n",
                                    _archive((b"x.o/", syn.object_with())).replace(b"`\n", b"``")])
def test_a_malformed_static_library_is_an_error(read: Read, broken: bytes) -> None:
    with pytest.raises(BadFatbin):
        read(broken)
