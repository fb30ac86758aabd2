"""Reports of other versions and moods of the tools: what is no count is no count."""

import pytest

from evaluator.judge.profile_csv import UnknownColumns, rows_from_csv
from evaluator.judge.sanitizer_report import first_fault, summary_count
from evaluator.records.evidence import SanitizerEvidence
from evaluator.records.verdicts import EvaluatorFault, Verdict
from evaluator.stages import sanitizer

END = "========= ERROR SUMMARY: 1 error\n"


def test_errors_that_were_not_printed_are_no_second_count(recorded):
    report = recorded("sanitizer/h200_out_of_bounds.json")["evidence"]["report"]
    assert "ERROR SUMMARY: 876 errors were not printed" in report
    assert summary_count(report) == 896


@pytest.mark.parametrize(
    ("report", "kind", "place"),
    [
        ("Stack overflow\n=========     at k(float *)+0x70 in kernel.cu:5\n",
         "Stack overflow", ("k(float *)", "kernel.cu", 5)),
        ("Warp-level exception: Illegal instruction\n=========     at k()+0x70\n",
         "Warp-level exception: Illegal instruction", ("k()", None, None)),
        ("Invalid __global__ write of size 4 bytes\n=========     at 0x70 in k.cu:7:k(float*)\n",
         "Invalid __global__ write of size 4 bytes", ("k(float*)", "k.cu", 7)),
        ("Invalid __global__ write of size 4 bytes\n=========     at 0x70 in k(float*)\n",
         "Invalid __global__ write of size 4 bytes", ("k(float*)", None, None)),
    ],
)  # fmt: skip
def test_a_fault_is_named_whatever_the_tools_version_calls_it(report, kind, place):
    fault = first_fault("========= COMPUTE-SANITIZER\n========= " + report + END)
    assert fault is not None
    assert fault.kind == kind
    assert (fault.kernel, fault.source_file, fault.source_line) == place


def test_the_tools_own_lines_are_no_fault():
    report = "========= COMPUTE-SANITIZER\n========= Target application returned an error\n"
    assert first_fault(report + "========= ERROR SUMMARY: 0 errors\n") is None


def test_a_failure_of_the_sanitizer_itself_is_no_verdict_on_the_kernel(recorded):
    value = recorded("sanitizer/h200_out_of_bounds.json")["evidence"]
    report = "========= Error: Internal Sanitizer Error: it broke\n=========\n" + END
    fault = first_fault(report)
    assert fault is not None
    seen = SanitizerEvidence.model_validate(
        {**value, "report": report, "error_count": 1, "first_fault": fault}
    )
    with pytest.raises(EvaluatorFault, match="the tool itself failed: Error: Internal Sanitizer"):
        sanitizer.judge(seen)
    real = sanitizer.judge(seen.model_copy(update={"first_fault": None}))
    assert real.verdict is Verdict.SANITIZER_ERROR


@pytest.mark.parametrize(
    ("before", "columns", "units", "row"),
    [
        ("", '"Address","Source","inst_executed","thread_inst_executed_true"', "",
         '"0x10","HGMMA","4","128"'),
        ("\ufeff", '"Address","Source","inst_executed [inst]","thread_inst_executed_true [thread]"',
         "", '"0x10","HGMMA","4","128"'),
        ("", '"Source","Live","# Instructions Executed",'
         '"# Predicated-On Thread Instructions Executed","Address"', '"","","inst","thread",""\n',
         '"HGMMA","9","4.0","1.28e+02","10a0"'),
    ],
)  # fmt: skip
def test_the_source_page_is_read_in_the_spellings_of_several_versions(before, columns, units, row):
    text = f'{before}"Kernel Name","k"\n{columns}\n{units}{row}\n'
    actions = rows_from_csv(text)
    assert actions is not None
    [action] = actions
    assert action["name"] == "k"
    [[address, source, warps, threads]] = action["rows"]
    assert (source, warps, threads) == ("HGMMA", 4, 128)
    assert address in (0x10, 0x10A0)


def test_an_address_that_is_none_is_an_unreadable_report_and_no_crash():
    columns = '"Address","Source","inst_executed","thread_inst_executed_true"'
    with pytest.raises(UnknownColumns, match="no address: 'here'"):
        rows_from_csv(f'"Kernel Name","k"\n{columns}\n"here","HGMMA","4","128"\n')
