"""The counters judge: executions joined to the disassembly, shares, and what stays unknown."""

import pytest

from evaluator.device import Profile, ProfileRow
from evaluator.judge.profile_csv import UnknownColumns, number, rows_from_csv
from evaluator.records.evaluation import StageResult
from evaluator.records.evidence import (
    CountersEvidence,
    Ending,
    InstructionCount,
    KernelLaunch,
    ProcessReport,
    SassEvidence,
    SassMatch,
    TimingEvidence,
)
from evaluator.records.summary import launch_difference, summarise
from evaluator.records.verdicts import InstructionStatus, Stage, Tier, Verdict
from evaluator.stages import counters

GEMM_FLOPS = 2 * 8192 * 7168 * 5120
HGMMA = SassMatch(
    function="f",
    address=0x60,
    opcode="HGMMA.64x8x16.F32.BF16",
    text="HGMMA.64x8x16.F32.BF16 R24, gdesc[UR4], RZ, !UPT",
    family="GMMA",
    tier=Tier.MMA,
)


def sass(*matches: SassMatch) -> SassEvidence:
    return SassEvidence(
        cubin_sha256="0" * 64,
        tool_version="13",
        families=("GMMA",),
        functions=("f",),
        opcode_counts=(),
        matches=matches,
        match_count=len(matches),
        literal_match=bool(matches),
        tier=Tier.MMA,
    )


def profile(*rows: ProfileRow, **changes: object) -> Profile:
    process = ProcessReport(command=("ncu",), ending=Ending.FINISHED, exit_code=0, duration_ns=1)
    fields: dict = {
        "tool_version": "2025.3.1",
        "process": process,
        "log": "",
        "rows": rows,
        "library_sha256": "0" * 64,
    }
    return Profile(**{**fields, **changes})


def row(text: str = HGMMA.text, warps: int = 128, threads: int = 4096, **place: object):
    at = {"function": "f", "address": 0x60, **place}
    return ProfileRow(text=text, warp_executions=warps, thread_executions=threads, **at)


def judged(seen: Profile, *matches: SassMatch, flops: int = GEMM_FLOPS) -> CountersEvidence:
    result = counters.judge(seen, sass(*(matches or (HGMMA,))), flop_count=flops)
    assert result.verdict is Verdict.PASSED
    assert result.evidence is not None
    return result.evidence


def test_thirty_two_warpgroups_are_128_warp_executions_of_one_instruction():
    seen = judged(profile(row()), flops=32 * 2 * 64 * 8 * 16)
    assert seen.status is InstructionStatus.EXECUTED
    assert seen.target_flop_count == 32 * 2 * 64 * 8 * 16
    assert seen.work_share == 1.0
    assert seen.tier is Tier.MMA


def test_the_source_page_recorded_on_an_h200_gives_all_the_arithmetic(recorded):
    value = recorded("counters/h200_gemm_wgmma_source_page.json")
    actions = rows_from_csv(value["csv"])
    assert actions is not None
    (action,) = actions
    base = action["rows"][0][0]
    rows = [
        ProfileRow(
            function=action["name"],
            address=address - base,
            text=text,
            warp_executions=warps,
            thread_executions=threads,
        )
        for address, text, warps, threads in action["rows"]
    ]
    disassembly = SassEvidence.model_validate(value["sass"])
    result = counters.judge(profile(*rows), disassembly, flop_count=GEMM_FLOPS)
    assert result.evidence is not None
    assert result.evidence.work_share == 1.0
    by_module = CountersEvidence.model_validate(value["counters"])
    assert result.evidence.target_flop_count == by_module.target_flop_count == GEMM_FLOPS
    assert len(result.evidence.instructions) == len(by_module.instructions) == 36


@pytest.mark.parametrize(
    ("case", "status", "tier", "share"),
    [
        ("token_wgmma", InstructionStatus.EXECUTED, Tier.MMA, 1 / 2048),
        ("guarded_instruction", InstructionStatus.NOT_EXECUTED, None, None),
        ("unlaunched_tma", InstructionStatus.NOT_EXECUTED, None, None),
        ("mha_forward", InstructionStatus.EXECUTED, Tier.MMA, 1.0),
    ],
)
def test_the_records_of_an_h200_still_load(recorded, case, status, tier, share):
    seen = CountersEvidence.model_validate(recorded(f"counters/h200_{case}.json")["evidence"])
    assert (seen.status, seen.tier, seen.work_share) == (status, tier, share)


def test_an_instruction_that_no_thread_ran_is_not_executed():
    seen = judged(profile(row(warps=128, threads=0)))
    assert seen.status is InstructionStatus.NOT_EXECUTED
    assert seen.work_share is None
    assert [count.thread_executions for count in seen.instructions] == [0]


def test_a_kernel_that_was_never_launched_leaves_no_row_and_is_not_executed():
    other = row("FFMA R1, R2, R3, R4", address=0x10)
    assert judged(profile(other)).status is InstructionStatus.NOT_EXECUTED


def test_rows_are_found_by_text_where_the_profiler_spells_the_function_differently():
    seen = judged(profile(row("  " + HGMMA.text + " ;", function="gemm(int)", address=0)))
    assert seen.status is InstructionStatus.EXECUTED
    assert seen.instructions[0].function == "gemm(int)"


def test_two_launches_of_one_kernel_are_summed():
    seen = judged(profile(row(), row(warps=4, threads=128)))
    assert [(c.warp_executions, c.thread_executions) for c in seen.instructions] == [(132, 4224)]


def test_the_dummy_of_a_bare_commit_counts_as_control_and_does_no_work():
    dummy = HGMMA.model_copy(
        update={"text": "HGMMA.64x8x16.F16 RZ, gdesc[URZ], RZ, !UPT, gsb0", "tier": Tier.CONTROL}
    )
    seen = judged(profile(row(dummy.text)), dummy)
    assert (seen.status, seen.tier) == (InstructionStatus.EXECUTED, Tier.CONTROL)
    assert (seen.work_share, seen.work_share_reason) == (None, counters.NO_MMA)


def test_the_share_of_blackwells_instructions_is_unknown_with_the_reason():
    text = "UTCHMMA gdesc[UR4], gdesc[UR6], tmem[UR8]"
    utc = HGMMA.model_copy(update={"opcode": "UTCHMMA", "text": text, "family": "UTC"})
    seen = judged(profile(row(text)), utc)
    assert seen.status is InstructionStatus.EXECUTED
    assert (seen.work_share, seen.work_share_reason) == (None, counters.NO_SHAPE)


def test_the_share_of_sparse_instructions_is_unknown_with_the_reason():
    text = "HGMMA.SP.64x8x32.F32.BF16 R24, gdesc[UR4], RZ, R2"
    sparse = HGMMA.model_copy(update={"opcode": "HGMMA.SP.64x8x32.F32.BF16", "text": text})
    seen = judged(profile(row(text)), sparse)
    assert (seen.status, seen.tier) == (InstructionStatus.EXECUTED, Tier.MMA)
    assert (seen.work_share, seen.work_share_reason) == (None, counters.SPARSE_REASON)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"trouble": "counters not permitted: ask", "rows": None}, "counters not permitted: ask"),
        ({"rows": ()}, "the profile holds no instruction at all"),
        ({"rows": None}, "the profile holds no instruction at all"),
    ],
)
def test_what_could_not_be_measured_is_unknown_and_never_a_no(changes, reason):
    seen = judged(profile(**changes))
    assert (seen.status, seen.reason) == (InstructionStatus.UNKNOWN, reason)
    assert (seen.work_share, seen.work_share_reason) == (None, reason)


def test_a_candidate_that_fails_under_the_profiler_is_unknown():
    died = ProcessReport(command=("ncu",), ending=Ending.FINISHED, exit_code=14, duration_ns=1)
    seen = judged(profile(row(), process=died))
    assert seen.status is InstructionStatus.UNKNOWN
    assert seen.reason == "the candidate failed under the profiler: exit code 14"


def test_without_a_match_nothing_is_profiled():
    result = counters.absent(GEMM_FLOPS)
    assert result.evidence is not None
    assert result.evidence.status is InstructionStatus.ABSENT


def launch(name: str = "k", grid: int = 4, kind: str = "kernel", count: int = 1) -> KernelLaunch:
    return KernelLaunch(kind=kind, name=name, grid=(grid, 1, 1), block=(32, 1, 1), count=count)


def timed(recorded, *launches: KernelLaunch) -> TimingEvidence:
    value = recorded("timing/h200_gemm_wgmma.json")["evidence"]
    return TimingEvidence.model_validate({**value, "launches": launches})


def test_other_kernels_in_the_timed_run_make_the_instructions_unknown(recorded):
    seen = judged(profile(row(), launches=(launch(),)))
    results = [
        StageResult(stage=Stage.COUNTERS, verdict=Verdict.PASSED, message="", evidence=seen),
        StageResult(
            stage=Stage.TIMING,
            verdict=Verdict.PASSED,
            message="",
            evidence=timed(recorded, launch(grid=5)),
        ),
    ]
    told = summarise(results, ()).target_instructions
    assert told is not None
    assert told.status is InstructionStatus.UNKNOWN
    expected = "profile differs from timed run: profiled 1 x k (4, 1, 1), timed 1 x k (5, 1, 1)"
    assert told.reason == expected


def test_copies_do_not_make_a_difference_and_numbers_of_launches_do(recorded):
    seen = judged(profile(row(), launches=(launch(),)))
    copy = launch("memcpy", kind="memcpy")
    assert launch_difference(seen, timed(recorded, copy, launch())) == ""
    assert launch_difference(seen, timed(recorded, launch(count=2))) != ""


def test_the_csv_is_read_by_column_names_in_any_order():
    text = (
        '==PROF== Connected\n"Kernel Name","f(int)",\n'
        '"thread_inst_executed_true","Source","Address","inst_executed"\n'
        '"1,024","  HGMMA X","0x110","32"\n"n/a","EXIT","0x120","32"\n'
    )
    assert rows_from_csv(text) == [{"name": "f(int)", "grid": None, "block": None, "rows": None}]
    whole = rows_from_csv(text.replace('"n/a"', '"7"'))
    assert whole is not None
    assert whole[0]["rows"] == [[0x110, "HGMMA X", 32, 1024], [0x120, "EXIT", 32, 7]]


def test_unknown_columns_are_told_and_an_empty_page_is_no_data():
    with pytest.raises(UnknownColumns, match="Samples"):
        rows_from_csv('"Address","Source","Samples"\n"0x0","EXIT","1"\n')
    assert rows_from_csv("==WARNING== No kernels were profiled.\n") is None


def test_numbers_as_ncu_prints_them():
    assert [number(text) for text in ("1,204,224", "0", "12.0", "n/a", "")] == [
        1204224,
        0,
        12,
        None,
        None,
    ]


def test_the_best_tier_is_that_of_what_ran():
    count = InstructionCount(**HGMMA.model_dump(), warp_executions=4, thread_executions=128)
    assert counters.best_tier([Tier.CONTROL, count.tier, Tier.PAYLOAD]) is Tier.MMA
    assert counters.best_tier([]) is None
