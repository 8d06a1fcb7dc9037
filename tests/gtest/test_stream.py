"""Torn, glued and interleaved output: what ran where is still told, or nothing is told."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.gtest.stream import OutputReader, Trouble

A, B = "AttentionTest.A", "AttentionTest.AB"
MEA = "ONNX Attention: using Memory Efficient Attention (batch=1)\n"


def read(*pieces: str) -> OutputReader:
    reader = OutputReader((A, B))
    for piece in pieces:
        reader.feed(piece.encode())
    reader.close()
    return reader


def body(text: str) -> list[str]:
    return read(f"[ RUN      ] {A}\n{text}[       OK ] {A} (0 ms)\n").tests[A].paths


@pytest.mark.parametrize(("line", "path"), [
    (MEA, "mea"),
    ("ONNX Attention: using Flash Attention (batch=1)\n", "flash"),
    ("Attention: using unified unfused path (x)\n", "unfused"),
    ("ONNX Attention: using Unfused Attention (x)\n", "unfused"),
    ("ONNX Attention: using cuDNN SDPA (x)\n", "cudnn sdpa"),
    ("\x1b[36mOperator=MultiHeadAttention DataType=fp16 SdpaKernel=EFFICIENT_ATTENTION\x1b[0m\n", "mea"),
    ("Operator=GroupQueryAttention Node=n DataType=bf16 SdpaKernel=FLASH_ATTENTION\n", "flash"),
    ("Operator=Attention DataType=fp32 SdpaKernel=MATH\n", "unfused"),
    ("Operator=Attention DataType=fp32 SdpaKernel=CUDNN_FLASH_ATTENTION\n", "cudnn_flash"),
])
def test_each_dispatch_line_of_onnx_runtime_names_its_path(line: str, path: str) -> None:
    assert body(line) == [path]


def test_dispatch_line_behind_half_a_log_line_is_seen() -> None:
    assert body("2026-01-01 [V:onnxruntime:, x.cc:1 F] half a l" + MEA) == ["mea"]


def test_dispatch_line_torn_by_another_thread_is_put_together() -> None:
    assert body("ONNX Attention: using [W:other] text\nMemory Efficient Attention (batch=1)\n") == ["mea"]


def test_name_of_a_path_alone_is_no_dispatch() -> None:
    assert body("falls back from Flash Attention (not supported)\n") == []


def test_head_of_a_line_alone_is_no_dispatch() -> None:
    assert body("ONNX Attention: using \n") == []


def test_torn_head_does_not_reach_into_the_next_test() -> None:
    reader = read(f"[ RUN      ] {A}\nONNX Attention: using \n[       OK ] {A} (0 ms)\n",
                  f"[ RUN      ] {B}\nFlash Attention (text)\n[       OK ] {B} (0 ms)\n")
    assert reader.tests[B].paths == []


def test_torn_head_of_a_set_up_does_not_reach_into_the_test_after_it() -> None:
    reader = read(f"ONNX Attention: using \n[ RUN      ] {A}\nFlash Attention (text)\n[       OK ] {A} (0 ms)\n")
    assert reader.tests[A].paths == []


def test_marks_glued_to_other_text_are_seen() -> None:
    reader = read(f"half a line[ RUN      ] {B}2026-01-01 {MEA}more[       OK ] {B} (12 ms)\n")
    assert (reader.tests[B].paths, reader.tests[B].result) == (["mea"], "passed")


def test_line_without_an_end_counts_when_the_output_ends() -> None:
    reader = read(f"[ RUN      ] {A}\nAttention: using unified unfused path (")
    assert (reader.running, reader.tests[A].paths) == (A, ["unfused"])


def test_parameter_behind_a_failed_test_hides_no_end() -> None:
    reader = read(f"[ RUN      ] {A}\n[  FAILED  ] {A}, where GetParam() = (1, 2 ms) (3 ms)\n")
    assert reader.tests[A].result == "failed"


def test_marks_of_unknown_tests_printed_by_a_test_are_ignored() -> None:
    reader = read(f"[ RUN      ] {A}\n[ RUN      ] Nested.Test\n{MEA}[       OK ] Nested.Test (0 ms)\n")
    assert (reader.running, reader.tests[A].paths) == (A, ["mea"])


def test_summary_at_the_end_changes_no_result() -> None:
    reader = read(f"[ RUN      ] {A}\n[       OK ] {A} (0 ms)\n[  FAILED  ] {A}\n",
                  "[==========] 1 test from 1 test suite ran. (0 ms total)\n")
    assert (reader.tests[A].result, reader.finished) == ("passed", True)


def test_reason_of_a_skip_is_told_without_log_lines() -> None:
    reader = read(f"[ RUN      ] {A}\nx.cc:6: Skipped\nMEA is not compiled\n"
                  f"2026-01-01 10:00:00.1 [V:onnxruntime:, x.cc:1 F] noise\nin this build\n[  SKIPPED ] {A} (0 ms)\n")
    assert reader.tests[A].skip_reason == "MEA is not compiled in this build"


def test_cuda_errors_are_kept_with_the_test_that_they_fell_into() -> None:
    reader = read(f"[ RUN      ] {A}\nCUDA failure 100: no CUDA-capable device is detected ; GPU=0\n")
    assert reader.troubles == [
        Trouble("100", "CUDA failure 100: no CUDA-capable device is detected", A)]


def test_line_that_never_ends_takes_no_memory() -> None:
    reader = OutputReader((A,))
    reader.feed(f"[ RUN      ] {A}\n".encode())
    for _ in range(20):
        reader.feed(b"x" * (1 << 20))
    assert len(reader._pending) <= 2 << 20
    reader.feed(MEA.encode())
    assert reader.tests[A].paths == ["mea"]


OUTPUT = (f"[==========] Running\n[ RUN      ] {A}\nlog\n{MEA}[       OK ] {A} (0 ms)\n"
          f"[ RUN      ] {B}\nx.cc:1: Skipped\nno reason\n[  SKIPPED ] {B} (0 ms)\n"
          "[==========] 2 tests from 1 test suite ran.\n").encode()


@given(st.lists(st.integers(0, len(OUTPUT)), max_size=12))
def test_pieces_in_which_output_arrives_make_no_difference(cuts: list[int]) -> None:
    reader = OutputReader((A, B))
    edges = [0, *sorted(cuts), len(OUTPUT)]
    for start, end in itertools.pairwise(edges):
        reader.feed(OUTPUT[start:end])
    reader.close()
    assert reader.tests[A].paths == ["mea"]
    assert (reader.tests[B].result, reader.tests[B].skip_reason) == ("skipped", "no reason")
    assert reader.finished


@given(st.binary(max_size=300))
def test_no_output_makes_the_reader_fail(junk: bytes) -> None:
    reader = OutputReader((A,))
    reader.feed(f"[ RUN      ] {A}\n".encode() + junk)
    reader.close()
