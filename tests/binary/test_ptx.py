"""PTX text as nvcc writes it, and how long a unit's megabytes of it take."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.binary import names
from tasks.binary.ptx import read_ptx

HEAD = b".version 9.0\n.target sm_90\n.address_size 64\n\n"
BODY = b"""\t.reg .b32 %r<9>;
\t.shared .align 4 .b8 own[256];
\tld.shared.u32 %r1, [own];
\tld.shared.u32 %r2, [outer];
@%p1 bra $L__BB7_2;
$L__BB7_2:
\tmov.b64 %SPL, __local_depot3;
\tret;
"""
KERNEL = b".visible .entry _Z1kPf(\n\t.param .u64 _Z1kPf_param_0\n)\n{\n" + BODY + b"}\n"


def test_a_kernels_text_is_without_lines_comments_and_numbers_that_other_kernels_shift() -> None:
    plain, rest = read_ptx(HEAD + KERNEL)
    shifted, _ = read_ptx(HEAD + KERNEL.replace(b"BB7", b"BB12").replace(b"depot3", b"depot14")
                          .replace(b"\tret;", b"\t// gone\n\t.loc\t1 9 3\n$L__tmp5:\n\tret;"))
    assert plain == shifted
    assert [(function.name, function.entry) for function in plain] == [("_Z1kPf", True)]
    assert b"$L__BB_2:" in plain[0].text
    assert b"__local_depot;" in plain[0].text
    assert rest == HEAD.strip() + b"\n"


@pytest.mark.parametrize(("outside", "size"), [
    (b"", 256), (b".shared .align 16 .b8 outer[100];\n", 356), (b".shared .align 4 .b8 unnamed[100];\n", 256),
    (b".extern .shared .align 16 .b8 outer[];\n", 256), (b".extern .shared .align 16 .b8 outer[64];\n", 256)])
def test_shared_memory_is_a_kernels_own_and_what_it_names_but_nothing_dynamic(outside: bytes, size: int) -> None:
    assert [function.shared for function in read_ptx(HEAD + outside + KERNEL)[0]] == [size]


PIECES = [b"_GLOBAL__N__", b"_INTERNAL_", b"__fatbinwrap_", b"RegisterLinkedBinary_", b"__nv_static_22__", b"tmpxft_",
          b"_cpp1_ii_", b"NV_MODULE_ID_", b"0", b"12", b"33", b"b4d19867", b"12345678", b"_", b"_4_",
          b"_12_fmha_sm80_cu_", b"4cd3d5c3", b"9298", b"6hidden", b"\n"]


@given(st.lists(st.sampled_from(PIECES), max_size=14).map(b"".join))
def test_the_quick_search_for_varying_names_finds_what_the_pattern_finds_at_any_byte(data: bytes) -> None:
    quick = names.stable_bytes(data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(names, "_places", lambda data: [(place, place) for place in range(len(data) + 1)])
        assert names.stable_bytes(data) == quick


def test_a_megabyte_of_ptx_takes_less_than_looking_for_varying_names_in_every_byte_of_it() -> None:
    """A unit of ONNX Runtime has 4 MB of it for one architecture."""
    line = b"\tfma.rn.ftz.f32 \t%f1234, %f1235, %f1236, %f1237;\n"
    text = HEAD + b"".join(KERNEL.replace(b"_Z1kPf", b"_Z%dk" % n).replace(b"\tret;", line * 1000 + b"\tret;")
                           for n in range(20))
    text += b".global .align 4 .u32 _ZN33_GLOBAL__N__704178c0_4_k_cu_table6hiddenE;\n"

    def processor_time(work: Callable[[], object]) -> float:
        began = time.process_time()
        work()
        return time.process_time() - began

    every_byte = min(processor_time(lambda: list(names._VARYING.finditer(text))) for _ in range(3))
    assert min(processor_time(lambda: read_ptx(text)) for _ in range(3)) < every_byte
    assert len(read_ptx(text)[0]) == 20
