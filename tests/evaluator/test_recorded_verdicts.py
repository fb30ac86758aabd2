"""Every run recorded on an H200, judged again by today's judges: the verdict and its words."""

import json
from pathlib import Path

import pytest

from evaluator.judge.tolerances import GPU_EXCESS
from evaluator.records.evaluation import AnyStageResult
from evaluator.records.evidence import (
    CorrectnessEvidence,
    CountersEvidence,
    SanitizerEvidence,
    TimingEvidence,
)
from evaluator.records.verdicts import Verdict
from evaluator.stages import correctness, sanitizer, timing

ROOT = Path(__file__).parents[2]
EVIDENCE = ROOT / "tests" / "evidence"
RECORDED = sorted(str(path.relative_to(EVIDENCE)) for path in EVIDENCE.glob("*/*.json"))
LIMIT_BYTES = 200_000

VERDICTS = {
    "correctness/h200_gemm_wgmma": (Verdict.PASSED, "3 trials correct, largest error 0"),
    "correctness/h200_wrong_epilogue": (
        Verdict.INCORRECT_NUMERICAL,
        "output C: 1829212 of 58720256 elements wrong, first at (0, 248), expected 88, "
        "got 2.6875; limit |out-ref| <= 0.01 + 0.01*|ref|",
    ),
    "correctness/h200_stale_tail": (
        Verdict.INCORRECT_NUMERICAL,
        "output C: 4096 of 65536 elements never written, first at (240, 0)",
    ),
    "correctness/h200_empty_run": (
        Verdict.INCORRECT_NUMERICAL,
        "output C: 65536 of 65536 elements never written; check the launch for errors "
        "(cudaGetLastError): perhaps no kernel ran",
    ),
    "correctness/h200_input_writer": (
        Verdict.INPUT_MUTATED,
        "input A changed during the call; inputs are const",
    ),
    "correctness/h200_racy_reduction": (
        Verdict.INCORRECT_NUMERICAL,
        "output C: 65313 of 65536 elements wrong, first at (0, 0), expected -10.75, "
        "got -2.40625; limit |out-ref| <= 0.01 + 0.01*|ref|",
    ),
    "correctness/h200_cached_output": (
        Verdict.INCORRECT_NUMERICAL,
        "two calls on equal inputs gave different outputs, beyond the tolerance",
    ),
    "correctness/h200_cublas_dlopen": (
        Verdict.BANNED_LIBRARY,
        "the process mapped libcublas.so.13.1.0.3, libcublasLt.so.13.1.0.3, which is banned",
    ),
    "correctness/h200_memory_hog": (
        Verdict.OUT_OF_MEMORY,
        "took 129.5 GiB of GPU memory beside its buffers, at most 16 GiB are allowed",
    ),
    "correctness/h200_infinite_loop": (
        Verdict.TIMEOUT,
        "no answer to 'call' after 10 s, limit reached",
    ),
    "sanitizer/h200_clean": (Verdict.PASSED, "memcheck: 0 errors"),
    "sanitizer/h200_infinite_loop": (
        Verdict.TIMEOUT,
        "under memcheck: still running after 45 s, limit reached",
    ),
    "sanitizer/h200_starved_barrier": (
        Verdict.TIMEOUT,
        "under memcheck: still running after 45 s, limit reached",
    ),
    "sanitizer/h200_out_of_bounds": (
        Verdict.SANITIZER_ERROR,
        "memcheck: 896 errors, limit 0; first: Invalid __global__ write of size 2 bytes in "
        "gemm(const __nv_bfloat16 *, const __nv_bfloat16 *, __nv_bfloat16 *) at kernel.cu:13",
    ),
    "sanitizer/h200_stray_write": (
        Verdict.SANITIZER_ERROR,
        "memcheck: 32 errors, limit 0; first: Invalid __global__ write of size 2 bytes in "
        "stray(__nv_bfloat16 *) at kernel.cu:16",
    ),
    "sanitizer/h200_late_fault": (
        Verdict.SANITIZER_ERROR,
        "memcheck: 1 error, limit 0; first: Invalid __global__ write of size 2 bytes in "
        "late(__nv_bfloat16 *, long long) at kernel.cu:20",
    ),
    "sanitizer/h200_bare_commit_group": (
        Verdict.SANITIZER_ERROR,
        "memcheck: 1421 errors, limit 0; first: Invalid __shared__ read of size 2048 bytes in "
        "gemm(const __nv_bfloat16 *, const __nv_bfloat16 *, __nv_bfloat16 *) at kernel.cu:9",
    ),
    "timing/h200_gemm_wgmma": (Verdict.PASSED, "752.9 us, 1.007x of cuBLAS (+-0.2%, limit 2.0%)"),
    "timing/h200_guarded_instruction": (
        Verdict.PASSED,
        "39.2 us, 0.070x of torch (+-0.5%, limit 2.0%)",
    ),
    "timing/h200_mha_forward": (
        Verdict.PASSED,
        "2388.1 us, 1.029x of cuDNN (+-1.0%, limit 2.0%)",
    ),
    "timing/h200_mha_forward_causal": (
        Verdict.PASSED,
        "1318.0 us, 1.024x of cuDNN (+-0.2%, limit 2.0%)",
    ),
    "timing/h200_honest_plain_one_copy": (
        Verdict.PASSED,
        "39.4 us, 0.070x of torch (+-0.3%, limit 2.0%)",
    ),
    "timing/h200_timer_forger_one_copy": (
        Verdict.TIMING_DISPUTED,
        "reported 1026.9 us a call, but 20 calls took 42192.2 us on the judge's clock "
        "(2109.6 us a call), at most 23018.7 us fit the report",
    ),
    "timing/h200_timer_forger": (
        Verdict.TIMING_DISPUTED,
        "reported 1026.5 us a call, but 32 calls took 68108.6 us on the judge's clock "
        "(2128.4 us a call), at most 36354.1 us fit the report",
    ),
}
PASSED_TIMINGS = [
    name
    for name, (verdict, _) in VERDICTS.items()
    if name.startswith("timing/") and verdict is Verdict.PASSED
]
FORGED_TIMINGS = ["timing/h200_timer_forger", "timing/h200_timer_forger_one_copy"]


def judged(case: str) -> AnyStageResult:
    value = json.loads((EVIDENCE / f"{case}.json").read_text())["evidence"]
    stage = case.partition("/")[0]
    if stage == "correctness":
        return correctness.judge(CorrectnessEvidence.model_validate(value))
    if stage == "sanitizer":
        return sanitizer.judge(SanitizerEvidence.model_validate(value))
    return timing.judge(TimingEvidence.model_validate(value))


@pytest.mark.parametrize("case", VERDICTS)
def test_a_recorded_run_gets_its_verdict_in_these_words(case):
    result = judged(case)
    assert (result.verdict, result.message) == VERDICTS[case]


@pytest.mark.parametrize("ending", ["crashed", "device_error", "out_of_memory"])
def test_an_error_that_memcheck_named_goes_before_how_the_process_ended(ending):
    value = json.loads((EVIDENCE / "sanitizer/h200_stray_write.json").read_text())["evidence"]
    changed = {**value["process"], "ending": ending, "exit_code": None, "detail": "so it ended"}
    result = sanitizer.judge(SanitizerEvidence.model_validate({**value, "process": changed}))
    assert result.verdict is Verdict.SANITIZER_ERROR
    assert " in stray(__nv_bfloat16 *)" in result.message


def test_no_recorded_run_is_forgotten():
    with_judge = {
        name.removesuffix(".json")
        for name in RECORDED
        if name.startswith(("correctness/", "sanitizer/", "timing/"))
    }
    assert with_judge == set(VERDICTS)


@pytest.mark.parametrize("name", [name for name in RECORDED if "/h200_" in name])
def test_a_recorded_run_says_where_it_comes_from_and_stays_small(name):
    path = EVIDENCE / name
    value = json.loads(path.read_text())
    header = value["header"]
    assert header["schema"] == "ptxboard.recorded/1"
    assert header["device"] == "NVIDIA H200"
    assert {"what", "driver", "tools", "date", "candidate"} <= set(header)
    assert (ROOT / header["candidate"]).exists(), header["candidate"]
    assert path.stat().st_size < LIMIT_BYTES


@pytest.mark.parametrize("case", PASSED_TIMINGS)
def test_the_judges_clock_as_it_is_set_today_would_pass_it_too(case):
    value = json.loads((EVIDENCE / f"{case}.json").read_text())["evidence"]
    today = TimingEvidence.model_validate(value).model_copy(
        update={
            "tolerated_batch_excess": GPU_EXCESS.share,
            "tolerated_batch_excess_ns": GPU_EXCESS.per_call_ns,
            "tolerated_bracket_ns": GPU_EXCESS.per_bracket_ns,
        }
    )
    assert timing.judge(today).passed


@pytest.mark.parametrize("case", FORGED_TIMINGS)
def test_the_forger_would_be_disputed_under_todays_clock_too(case):
    value = json.loads((EVIDENCE / f"{case}.json").read_text())["evidence"]
    today = TimingEvidence.model_validate(value).model_copy(
        update={
            "tolerated_batch_excess": GPU_EXCESS.share,
            "tolerated_batch_excess_ns": GPU_EXCESS.per_call_ns,
            "tolerated_bracket_ns": GPU_EXCESS.per_bracket_ns,
        }
    )
    assert timing.judge(today).verdict is Verdict.TIMING_DISPUTED


@pytest.mark.parametrize("name", [name for name in RECORDED if name.startswith("counters/")])
def test_recorded_counts_load_as_evidence(name):
    value = json.loads((EVIDENCE / name).read_text())
    seen = CountersEvidence.model_validate(value.get("evidence") or value["counters"])
    assert seen.status in ("executed", "not_executed")
    assert (seen.work_share is None) == (seen.work_share_reason is not None)
