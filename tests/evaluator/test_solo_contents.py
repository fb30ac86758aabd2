"""A candidate alone under a tool gets valid offsets and page numbers, not any integers."""

import ctypes
import struct
from pathlib import Path

import pytest

from evaluator.host.binding import Parameter
from evaluator.host.memory import own_buffers
from evaluator.judge.solo import run_watched
from evaluator.problems import find_problem
from evaluator.problems.tensors import index_contents
from evaluator.toolchain import Tool

DECODE = "gqa_paged_decode_h6_kv2_d64_ps1_small"


class PlainMemory:
    """A driver whose device memory is this process's own."""

    def __init__(self) -> None:
        self.kept = []

    def allocate(self, byte_count: int) -> int:
        self.kept.append(ctypes.create_string_buffer(byte_count))
        return ctypes.addressof(self.kept[-1])

    def copy_in(self, address: int, data: bytes) -> None:
        ctypes.memmove(address, data, len(data))

    def copy_on_device(self, target: int, source: int, byte_count: int) -> None:
        ctypes.memmove(target, source, byte_count)


def integers(raw: bytes) -> list[int]:
    return list(struct.unpack(f"{len(raw) // 4}i", raw))


def assert_valid(offsets: list[int], pages: list[int]) -> None:
    assert (offsets[0], offsets[-1], len(offsets)) == (0, 801, 8)
    assert offsets == sorted(offsets)
    assert (len(pages), len(set(pages))) == (801, 801)
    assert min(pages) >= 0
    assert max(pages) < 1_500


def test_a_tool_finds_them_in_the_sandbox(bench, make_work, tmp_path, monkeypatch):
    monkeypatch.setattr("evaluator.judge.solo.put_library", lambda work, workspace: None)
    monkeypatch.setattr("evaluator.sandbox._gpu_mounts", list)
    work = make_work("", target="host", problem=DECODE)
    shell = Tool(path=Path("/bin/sh"), root=Path("/bin"), version="any")
    options = ["-c", "cat contents_0.bin contents_1.bin > seen.bin"]
    watched = run_watched(
        work, bench.sandbox, shell, options, report_name="seen.bin", timeout_seconds=20
    )
    assert watched.report is not None, watched
    seen = integers(watched.report)
    assert_valid(seen[:8], seen[8:])


def test_they_are_what_the_candidate_is_given():
    contents = index_contents(find_problem(DECODE), 7)
    parameters = [
        Parameter(name="kv_indptr", dtype="int32", shape=(8,)),
        Parameter(name="kv_indices", dtype="int32", shape=(801,)),
        Parameter(name="q", dtype="bfloat16", shape=(7, 6, 64)),
        Parameter(name="sm_scale", dtype="float32"),
    ]
    memory = PlainMemory()
    places = own_buffers(memory, parameters, 3, contents)
    offsets, pages = (
        integers(ctypes.string_at(place, size))
        for place, size in zip(places, (32, 3204), strict=False)
    )
    assert_valid(offsets, pages)
    assert places[3] is None


def test_they_differ_by_seed_and_only_such_inputs_have_any():
    problem = find_problem(DECODE)
    first, other = index_contents(problem, 7), index_contents(problem, 8)
    assert list(first) == ["kv_indptr", "kv_indices"]
    assert all(first[name] != other[name] for name in first)
    assert index_contents(problem, 7) == first
    assert index_contents(find_problem("gemm_n256_k256"), 7) == {}


@pytest.mark.parametrize("name", ["q", "k_cache"])
def test_floats_are_left_to_the_process_itself(name):
    assert name not in index_contents(find_problem(DECODE), 7)
