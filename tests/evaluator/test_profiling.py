"""Nsight Compute where it refuses or fails: a fake `ncu` in the real sandbox, the real judge."""

from dataclasses import replace
from pathlib import Path

import pytest

from evaluator.bench import Bench
from evaluator.device import ProfileRow
from evaluator.judge.profile_csv import rows_from_csv
from evaluator.judge.profiling import profile
from evaluator.pipeline import run_lane
from evaluator.problems import find_problem
from evaluator.records.candidate import Candidate, Source
from evaluator.records.evaluation import StageResult, TargetInstructions
from evaluator.records.evidence import CountersEvidence, SassEvidence, TimingEvidence
from evaluator.records.summary import planned_stages, summarise
from evaluator.records.verdicts import InstructionStatus, Lane, Stage, Verdict
from evaluator.stages import counters
from evaluator.targets import find_target
from evaluator.toolchain import Tool
from evaluator.work import Work
from tests.evaluator.conftest import trick

REFUSED = """\
==PROF== Connected to process 5150 (/usr/bin/python3)
==ERROR== ERR_NVGPUCTRPERM - (text about counters on device 0)
==WARNING== No kernels were profiled.
"""
SILENT = "==PROF== Connected to process 5150\n==WARNING== No kernels were profiled.\n"


@pytest.fixture(scope="module")
def built(bench: Bench, tmp_path_factory: pytest.TempPathFactory) -> Work:
    """A kernel whose machine code holds a target instruction; built once."""
    candidate = Candidate(
        problem="gemm_n256_k256",
        target="h200",
        language="cuda",
        sources=(Source(path="kernel.cu", content=trick("guarded_instruction")),),
        entry_file="kernel.cu",
    )
    work = Work(
        candidate=candidate,
        problem=find_problem(candidate.problem),
        target=find_target(candidate.target),
        folder=tmp_path_factory.mktemp("guarded"),
    )
    for result in run_lane(work, bench, Lane.BUILD):
        assert result.passed, result.message
        work = work.with_result(result)
    return work


@pytest.fixture
def profiled(bench: Bench, built: Work, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """What the counters stage makes of an `ncu` that prints this and ends with this code."""
    monkeypatch.setattr("evaluator.sandbox._gpu_mounts", list)  # this machine may have no GPU

    def run(printed: str, code: int) -> CountersEvidence:
        folder = tmp_path / "nsight"
        folder.mkdir()
        script = folder / "ncu"
        script.write_text(f"#!/bin/sh\ncat <<'END'\n{printed}END\nexit {code}\n")
        script.chmod(0o755)
        tool = Tool(path=script, version="2025.3.1.0", root=folder)
        lent = replace(bench, device=Profiling(bench, tool))
        evidence = counters.run(built, lent).evidence
        assert isinstance(evidence, CountersEvidence)
        return evidence

    return run


class Profiling:
    """The judge's profiling half, without a GPU to open."""

    def __init__(self, bench: Bench, tool: Tool) -> None:
        self._sandbox, self._tools = bench.sandbox, replace(bench.toolchain, ncu=tool)

    def profile(self, work: Work):
        return profile(work, self._sandbox, self._tools)


@pytest.mark.parametrize("code", [0, 1, 9])
def test_counters_that_are_not_permitted_are_unknown_with_the_operators_fix(profiled, code):
    seen = profiled(REFUSED, code)
    assert seen.status is InstructionStatus.UNKNOWN
    assert seen.reason.startswith("counters not permitted: the driver keeps them for admin")
    assert "operator: set NVreg_RestrictProfilingToAdminUsers=0" in seen.reason
    assert (seen.work_share, seen.instructions) == (None, ())


@pytest.mark.parametrize(
    ("printed", "code", "reason"),
    [
        (SILENT, 0, "ncu wrote no report"),
        (SILENT, 3, "ncu wrote no report"),
        ("==ERROR== Failed to prepare kernel\n", 1, "ncu: Failed to prepare kernel"),
    ],
)
def test_a_profile_that_came_to_nothing_is_unknown_and_never_a_no(profiled, printed, code, reason):
    seen = profiled(printed, code)
    assert (seen.status, seen.reason) == (InstructionStatus.UNKNOWN, reason)


def told(built: Work, recorded, counted: CountersEvidence) -> tuple[Verdict, TargetInstructions]:
    """The whole evaluation around these counts; correctness and timing as recorded."""
    timed = recorded("timing/h200_guarded_instruction.json")["evidence"]
    evidence = {
        Stage.COUNTERS: counted,
        Stage.TIMING: TimingEvidence.model_validate({**timed, "launches": ()}),
    }
    later = [
        StageResult(stage=stage, verdict=Verdict.PASSED, message="", evidence=evidence.get(stage))
        for stage in (Stage.SANITIZER, Stage.CORRECTNESS, Stage.COUNTERS, Stage.TIMING)
    ]
    summary = summarise([*built.results, *later], planned_stages(is_gpu=True))
    assert summary.verdict is not None
    assert summary.target_instructions is not None
    return summary.verdict, summary.target_instructions


def test_a_refused_profile_leaves_verdict_and_time_untouched(profiled, built, recorded):
    verdict, instructions = told(built, recorded, profiled(REFUSED, 1))
    assert verdict is Verdict.PASSED
    assert instructions.status is InstructionStatus.UNKNOWN


def test_an_instruction_that_never_ran_passes_without_the_mark(built, recorded):
    value = recorded("counters/h200_guarded_instruction.json")["evidence"]
    verdict, instructions = told(built, recorded, CountersEvidence.model_validate(value))
    assert verdict is Verdict.PASSED
    assert instructions.status is InstructionStatus.NOT_EXECUTED


def test_a_kernel_named_like_an_instruction_is_no_instruction(built):
    """Field case O-21: ncu's column of kernel names is the author's text."""
    page = (
        '"Kernel Name","HGMMA_64x256x16_F32_BF16(float *)",\n'
        '"Address","Source","inst_executed","thread_inst_executed_true"\n'
        '"0x110","STG.E desc[UR4][R2.64], R5","32","1024"\n'
    )
    (action,) = rows_from_csv(page) or ()
    rows = [
        ProfileRow(
            function=action["name"],
            address=address,
            text=text,
            warp_executions=warps,
            thread_executions=threads,
        )
        for address, text, warps, threads in action["rows"]
    ]
    sass = built.result(Stage.SASS)
    assert sass is not None
    assert isinstance(sass.evidence, SassEvidence)
    assert sass.evidence.matches
    assert counters.count_matches(rows, sass.evidence.matches) == ()
