"""A trace set on disk reads back as it was written, and tells the faults of all its files."""

import json

import pytest

from evaluator.problems import load_problems
from evaluator.records import (
    InvalidRecord,
    Solution,
    Trace,
    TraceSet,
    read_trace_set,
    write_trace_set,
)

TWINS = [problem for problem in load_problems().values() if problem.development]
SOLUTION = Solution.model_validate(
    {
        "name": "mine",
        "definition": "gemm_n256_k256",
        "author": "alice",
        "spec": {"language": "cuda", "target_hardware": ["H200"], "entry_point": "k.cu::run"},
        "sources": [{"path": "k.cu", "content": "//"}],
    }
)


def trace_set():
    workloads = [
        Trace(definition=problem.name, workload=problem.workload, solution=None, evaluation=None)
        for problem in TWINS
    ]
    timed_out = {
        "status": "TIMEOUT",
        "environment": {"hardware": "H200"},
        "timestamp": "2026-11-29T12:00:00",
    }
    trace = Trace.model_validate(
        {
            "definition": "gemm_n256_k256",
            "workload": workloads[0].workload,
            "solution": "mine",
            "evaluation": timed_out,
        }
    )
    return TraceSet(
        definitions={problem.name: problem.definition for problem in TWINS},
        workloads=tuple(sorted(workloads, key=lambda item: item.definition)),
        solutions={"mine": SOLUTION},
        traces=(trace, trace),
    )


def test_it_reads_back_what_it_wrote(tmp_path):
    written = trace_set()
    write_trace_set(written, tmp_path)
    again = read_trace_set(tmp_path)
    assert again.definitions == written.definitions
    assert again.solutions == written.solutions
    assert again.traces == written.traces
    assert {item.definition for item in again.workloads} == set(written.definitions)
    assert len(again.workloads) == len(written.workloads)


def test_it_writes_flashinfers_folders(tmp_path):
    write_trace_set(trace_set(), tmp_path)
    assert (tmp_path / "definitions" / "gemm" / "gemm_n256_k256.json").is_file()
    assert (tmp_path / "workloads" / "attention" / "mha_bwd_d64_small.jsonl").is_file()
    assert (tmp_path / "solutions" / "gemm" / "mine.json").is_file()
    traces = tmp_path / "traces" / "alice" / "gemm" / "gemm_n256_k256.jsonl"
    assert len(traces.read_text().splitlines()) == 2


def test_it_refuses_a_name_that_occurs_twice_and_names_both_files(tmp_path):
    write_trace_set(trace_set(), tmp_path)
    text = (tmp_path / "solutions" / "gemm" / "mine.json").read_text()
    (tmp_path / "solutions" / "second.json").write_text(text)
    with pytest.raises(InvalidRecord) as caught:
        read_trace_set(tmp_path)
    (problem,) = caught.value.problems
    assert problem.pointer == "solutions/second.json#name"
    assert problem.rule == "the name occurs twice; it is also in solutions/gemm/mine.json"


def test_it_tells_the_faults_of_all_files_with_line_numbers(tmp_path):
    write_trace_set(trace_set(), tmp_path)
    traces = tmp_path / "traces" / "alice" / "gemm" / "gemm_n256_k256.jsonl"
    traces.write_text(traces.read_text() + '\n{"definition": NaN}\n')
    bad = json.loads((tmp_path / "definitions" / "gemm" / "gemm_n256_k256.json").read_text())
    del bad["axes"]
    (tmp_path / "definitions" / "bad.json").write_text(json.dumps(bad))
    with pytest.raises(InvalidRecord) as caught:
        read_trace_set(tmp_path)
    pointers = [problem.pointer for problem in caught.value.problems]
    assert "definitions/bad.json#axes" in pointers
    assert "traces/alice/gemm/gemm_n256_k256.jsonl:4" in pointers


def test_it_refuses_a_root_that_is_no_folder(tmp_path):
    with pytest.raises(InvalidRecord, match="expected a folder with definitions/"):
        read_trace_set(tmp_path / "nowhere")


@pytest.mark.parametrize("name", ["../mine", "a/b", ".hidden", ""])
def test_it_writes_no_file_outside_its_root(tmp_path, name):
    solution = SOLUTION.model_copy(update={"name": name})
    escaping = TraceSet(definitions=trace_set().definitions, solutions={name: solution})
    with pytest.raises(ValueError, match="cannot name a file"):
        write_trace_set(escaping, tmp_path)
