"""The generated unit that checks an entry point's parameters, by the real g++ and nvcc's rules."""

import subprocess
from pathlib import Path

import pytest

from evaluator.entry_unit import MARK, entry_unit
from evaluator.problems import find_problem
from evaluator.records.candidate import Candidate, Source
from evaluator.records.problem import Problem
from evaluator.targets import find_target


def with_scalar(dtype: str) -> Problem:
    """The small GEMM with a scalar between its tensors."""
    value = find_problem("gemm_n256_k256").model_dump(mode="json")
    inputs = value["definition"]["inputs"]
    alpha = {"shape": None, "dtype": dtype}
    value["definition"]["inputs"] = {"A": inputs["A"], "alpha": alpha, "B": inputs["B"]}
    value["workload"]["inputs"]["alpha"] = {"type": "scalar", "value": 2}
    value["call_order"] = ["A", "alpha", "B", "C"]
    return Problem.model_validate(value)


@pytest.fixture
def complaints(tmp_path: Path):
    """Our own lines in what g++ says about this parameter list."""

    def compiled(given: str, dtype: str) -> list[str]:
        text = f'extern "C" void run(const void* A, {given}, const void* B, void* C) {{}}\n'
        candidate = Candidate(
            problem="gemm_n256_k256",
            target="host",
            language="cpp",
            sources=(Source(path="kernel.cpp", content=text),),
            entry_file="kernel.cpp",
        )
        (tmp_path / "kernel.cpp").write_text(text)
        unit = entry_unit(candidate, with_scalar(dtype), find_target("host"))
        (tmp_path / "unit.cpp").write_text(unit)
        command = ["g++", "-std=c++17", "-fsyntax-only", "-I.", "unit.cpp"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
        found = [line for line in done.stderr.splitlines() if MARK in line and "error" in line]
        assert bool(found) == (done.returncode != 0), done.stderr
        return [line.split(MARK)[1].rstrip('"') for line in found]

    return compiled


@pytest.mark.parametrize(
    ("given", "dtype"),
    [("float a", "float32"), ("int a", "int32"), ("unsigned a", "int32"), ("long a", "int64")],
)
def test_a_scalar_of_the_right_kind_and_size_is_taken(complaints, given, dtype):
    assert complaints(given, dtype) == []


@pytest.mark.parametrize(
    ("given", "dtype", "size"),
    [
        ("double a", "float32", 4),
        ("int a", "float32", 4),
        ("float* a", "float32", 4),
        ("long a", "int32", 4),
        ("float a", "int32", 4),
        ("int a", "int64", 8),
    ],
)
def test_another_kind_or_size_is_told_in_words(complaints, given, dtype, size):
    (told,) = complaints(given, dtype)
    assert told.startswith("parameter 2 of run (")
    assert f"must be a scalar of {size} bytes, passed by value" in told


def test_a_missing_scalar_is_a_wrong_count(complaints):
    (told,) = complaints("const void* D, float a", "float32")
    assert told.startswith("run takes 4 parameters (")
    assert told.endswith("), seen 5")
