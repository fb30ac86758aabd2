"""The sanitizer's judge, on reports recorded on an H200 and on the ways in which it must fail."""

import pytest

from evaluator.host.solo import CANDIDATE_FAILED, DEVICE_FAILED, LOAD_FAILED, LOADING
from evaluator.judge.sanitizer_report import first_fault, summary_count
from evaluator.judge.sanitizing import ERROR_EXITS, options
from evaluator.records.evidence import Ending, SanitizerEvidence
from evaluator.records.verdicts import EvaluatorFault, Verdict
from evaluator.stages import sanitizer

LOADED = LOADING + "\n"


@pytest.fixture
def seen(recorded):
    def load(case: str, **changes: object) -> SanitizerEvidence:
        value = recorded(f"sanitizer/h200_{case}.json")["evidence"]
        process = {**value["process"], **changes.pop("process", {})}
        return SanitizerEvidence.model_validate({**value, **changes, "process": process})

    return load


def test_it_passes_a_clean_report(seen):
    result = sanitizer.judge(seen("clean"))
    assert (result.verdict, result.message) == (Verdict.PASSED, "memcheck: 0 errors")


def test_it_names_count_kind_kernel_and_line_of_the_first_fault(seen):
    result = sanitizer.judge(seen("out_of_bounds"))
    assert result.verdict is Verdict.SANITIZER_ERROR
    assert result.message == (
        "memcheck: 896 errors, limit 0; first: Invalid __global__ write of size 2 bytes in "
        "gemm(const __nv_bfloat16 *, const __nv_bfloat16 *, __nv_bfloat16 *) at kernel.cu:13"
    )


def test_a_fault_long_after_the_call_is_blamed_on_its_own_kernel(seen):
    result = sanitizer.judge(seen("late_fault"))
    assert result.verdict is Verdict.SANITIZER_ERROR
    assert " in late(__nv_bfloat16 *, long long) at kernel.cu:20" in result.message
    assert result.message.startswith("memcheck: 1 error, ")


def test_the_recorded_reports_are_parsed_again_to_the_same_fault(recorded):
    value = recorded("sanitizer/h200_late_fault.json")["evidence"]
    assert summary_count(value["report"]) == value["error_count"] == 1
    fault = first_fault(value["report"])
    assert fault is not None
    assert fault.model_dump() == value["first_fault"]


@pytest.mark.parametrize("exit_code", [0, 1, 14, 99])
def test_a_tool_that_ends_before_the_candidate_is_loaded_is_our_fault(seen, exit_code):
    nothing = {"error_count": None, "completed": False, "report": ""}
    process = {"exit_code": exit_code, "output_tail": "cannot find the injection library\n"}
    with pytest.raises(EvaluatorFault, match=rf"exit code {exit_code}\): 'cannot find the inj"):
        sanitizer.judge(seen("clean", process=process, **nothing))


def test_a_report_that_the_exit_code_contradicts_was_changed(seen):
    process = {"exit_code": 71, "output_tail": LOADED}
    result = sanitizer.judge(seen("clean", process=process, error_exit=71))
    assert result.verdict is Verdict.SANITIZER_ERROR
    assert (
        result.message == "memcheck's exit code 71 says errors, its report does not: it was changed"
    )


@pytest.mark.parametrize(
    ("refusal", "told"),
    [("", "no summary is there"), ("x.txt: found a link", "x.txt: found a link")],
)
def test_a_report_that_is_gone_or_cut_is_no_pass(seen, refusal, told):
    changed = {"error_count": None, "completed": False, "report": "", "refusal": refusal}
    result = sanitizer.judge(seen("clean", process={"output_tail": LOADED}, **changed))
    assert result.verdict is Verdict.SANITIZER_ERROR
    assert result.message == f"memcheck's report was taken away or changed: {told}"


def test_name_and_exit_code_are_other_ones_each_time():
    assert len(ERROR_EXITS) == 60
    assert not set(ERROR_EXITS) & {0, LOAD_FAILED, DEVICE_FAILED, CANDIDATE_FAILED, 126, 127}
    given = options("a.txt", 71)
    assert given[given.index("--error-exitcode") + 1] == "71"
    assert given[-2:] == ("--log-file", "a.txt")


@pytest.mark.parametrize(
    ("ending", "verdict"),
    [
        (Ending.TIMED_OUT, Verdict.TIMEOUT),
        (Ending.CRASHED, Verdict.RUNTIME_ERROR),
        (Ending.OUT_OF_MEMORY, Verdict.OUT_OF_MEMORY),
    ],
)
def test_how_the_process_ended_decides_where_memcheck_named_nothing(seen, ending, verdict):
    changed = {
        "ending": ending,
        "detail": "so it ended",
        "exit_code": None,
        "output_tail": LOADED,
    }
    result = sanitizer.judge(seen("clean", error_count=None, completed=False, process=changed))
    assert (result.verdict, result.message) == (verdict, "under memcheck: so it ended")


def test_a_device_error_without_a_memcheck_error_is_no_pass(seen):
    changed = {"exit_code": 14, "output_tail": "device error: cuCtxSynchronize: X (700)\n"}
    result = sanitizer.judge(seen("clean", process=changed))
    assert result.verdict is Verdict.RUNTIME_ERROR
    assert result.message == "under memcheck: device error: cuCtxSynchronize: X (700)"


def test_leaving_early_is_no_pass(seen):
    result = sanitizer.judge(seen("clean", process={"exit_code": 7}))
    assert result.verdict is Verdict.RUNTIME_ERROR


def test_the_count_is_that_of_the_last_summary_and_missing_without_one():
    text = "========= ERROR SUMMARY: 0 errors\nx\n========= ERROR SUMMARY: 3 errors\n"
    assert summary_count(text) == 3
    assert summary_count("========= COMPUTE-SANITIZER\n") is None
