"""The corpus of cheats, mistakes and honest kernels: that it is whole, and what a run of it says.

Verdicts of the build, and a few quick ones of the `host` target, are seen here; all the others by
`ptxboard corpus`, whose results the table in the docs shows.
"""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator.__main__ import main
from evaluator.bench import Bench
from evaluator.cli.corpus import line
from evaluator.corpus.cases import Case, InvalidCase, Kind, load_case, load_cases
from evaluator.corpus.document import NOT_RUN, document, load_rows
from evaluator.corpus.outcomes import Finding, Outcome, finding_of
from evaluator.corpus.results import Results, load, recorded
from evaluator.corpus.running import build, finish, open_judge, run_cases
from evaluator.corpus.tally import Tally
from evaluator.records.evidence import SassEvidence
from evaluator.records.verdicts import EvaluatorFault, InstructionStatus, Stage, Tier, Verdict
from evaluator.targets import find_target

CASES = {case.name: case for case in load_cases()}
DOCUMENT = Path(__file__).parents[2] / "docs" / "corpus.md"
TIERS_IN_THE_BINARY = {
    "dummy_commit_group": Tier.CONTROL,
    "guarded_instruction": Tier.PAYLOAD,
    "name_decoy": None,
    "token_wgmma": Tier.MMA,
}
BUILT_IN_CI = {
    *TIERS_IN_THE_BINARY,
    *(name for name, case in CASES.items() if case.expectation.ends_in_the_build),
    "honest_plain",
    "mentions_library",
    "my_cublas_like",
}
RUN_IN_CI = (
    "host_imports_judge",
    "host_memory_hunt",
    "host_only_first_output",
    "host_constructor_exit",
)


def expected(name: str, **changes: object):
    return CASES[name].expectation.model_copy(update=changes)


def outcome(verdict: Verdict | None, stage: Stage = Stage.TIMING, **more: object) -> Outcome:
    values: dict = {
        "digest": "0" * 64,
        "date": "2026-11-29",
        "harness_version": "2",
        "device": None,
        "seconds": 1.5,
        "verdict": verdict,
        "stage": stage,
        "message": "",
    }
    return Outcome(**{**values, **more})


PLAIN = {"target_instructions": InstructionStatus.ABSENT}


def test_there_are_enough_cheats_and_honest_kernels():
    kinds = [case.expectation.kind for case in CASES.values()]
    assert kinds.count(Kind.CHEAT) >= 60
    assert kinds.count(Kind.HONEST) >= 20
    honest = [case.expectation for case in CASES.values() if case.expectation.kind is Kind.HONEST]
    assert {(one.stage, one.verdict) for one in honest} == {(Stage.TIMING, Verdict.PASSED)}


def test_every_known_cheat_has_a_folder_or_a_reason_why_there_is_none():
    rows = load_rows()
    shown = {case.expectation.cheat_row for case in CASES.values()} - {None}
    assert [row.number for row in rows] == list(range(1, 91))
    assert {row.number for row in rows if row.without} == set(range(1, 91)) - shown


def test_every_cheat_names_its_row_and_only_what_passes_is_a_hole():
    for case in CASES.values():
        is_cheat = case.expectation.kind is Kind.CHEAT
        assert is_cheat == (case.expectation.cheat_row is not None), case.name
        if case.expectation.hole:
            assert (is_cheat, case.expectation.verdict) == (True, Verdict.PASSED), case.name


def test_quick_cases_come_first_and_hangs_last():
    verdicts = [case.expectation.verdict for case in load_cases(target="h200")]
    hangs = verdicts.count(Verdict.TIMEOUT)
    assert hangs >= 3
    assert verdicts[-hangs:] == [Verdict.TIMEOUT] * hangs
    stages = [case.expectation.stage for case in load_cases(target="host")]
    assert stages[0] is Stage.CORRECTNESS
    assert Stage.CORRECTNESS not in stages[stages.index(Stage.TIMING) :][:-1]


def test_a_folder_is_submitted_whole_with_its_entry_file_first():
    candidate = CASES["inline_ptx_header"].candidate
    paths = [source.path for source in candidate.sources]
    assert paths == ["kernel.cu", "ptx/mma.cuh", "ptx/registers.cuh"]
    assert candidate.entry_file == "kernel.cu"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('kind = "joke"', "odd: .*kind"),
        ("kind = ", "odd: Invalid value"),
        (None, r"odd: no file kernel\.\* in it"),
    ],
)
def test_an_expectation_that_cannot_be_read_is_named(tmp_path, text, message):
    folder = tmp_path / "odd"
    folder.mkdir()
    whole = Path("tests/candidates/honest_plain/expect.toml")
    root = DOCUMENT.parents[1]
    (folder / "expect.toml").write_text((root / whole).read_text() if text is None else text)
    with pytest.raises(InvalidCase, match=message):
        load_case(folder)


def test_an_unknown_name_and_a_missing_corpus_are_told(tmp_path):
    with pytest.raises(InvalidCase, match="no case named nobody in "):
        load_cases(names=["nobody", "honest_plain"])
    with pytest.raises(InvalidCase, match="run this in a checkout"):
        load_cases(tmp_path / "none")


@pytest.mark.parametrize(
    ("name", "seen", "finding"),
    [
        ("empty_run", outcome(Verdict.INCORRECT_NUMERICAL, Stage.CORRECTNESS), Finding.CAUGHT),
        ("empty_run", outcome(Verdict.PASSED), Finding.FORGED),
        ("empty_run", outcome(Verdict.INCORRECT_NUMERICAL, Stage.TIMING), Finding.OTHER),
        ("empty_run", outcome(Verdict.RUNTIME_ERROR, Stage.CORRECTNESS), Finding.OTHER),
        ("empty_run", outcome(None, Stage.SASS), Finding.BUILT),
        ("empty_run", outcome(None, None, fault="no GPU"), Finding.FAULT),
        ("cublas_user", outcome(None, Stage.SASS), Finding.FORGED),
        ("cublas_user", outcome(Verdict.BANNED_LIBRARY, Stage.POLICY), Finding.OTHER),
        ("cublas_user", outcome(Verdict.BANNED_LIBRARY, Stage.POLICY, message="cublas_v2.h"),
         Finding.CAUGHT),
        ("syntax_error", outcome(Verdict.COMPILE_ERROR, Stage.COMPILATION, message="kernel.cu(1)"),
         Finding.TOLD),
        ("syntax_error", outcome(Verdict.PASSED), Finding.FORGED),
        ("second_stream", outcome(Verdict.PASSED, **PLAIN), Finding.HARMLESS),
        ("second_stream", outcome(Verdict.TIMING_DISPUTED), Finding.OTHER),
        ("second_stream", outcome(Verdict.INCONCLUSIVE), Finding.INCONCLUSIVE),
        ("input_borrowed", outcome(Verdict.PASSED, **PLAIN), Finding.HOLE),
        ("honest_plain", outcome(Verdict.PASSED, **PLAIN), Finding.HONEST),
        ("honest_plain", outcome(Verdict.TIMING_DISPUTED), Finding.FALSE_ALARM),
        ("honest_plain", outcome(Verdict.INCONCLUSIVE), Finding.INCONCLUSIVE),
        ("records_backwards", outcome(Verdict.INCONCLUSIVE, message="came without times"),
         Finding.CAUGHT),
    ],
)  # fmt: skip
def test_what_an_outcome_says_of_the_judge(name, seen, finding):
    assert finding_of(expected(name), seen) is finding


def test_more_instructions_than_were_executed_are_a_forged_pass():
    executed = {"target_instructions": InstructionStatus.EXECUTED}
    unknown = outcome(Verdict.PASSED, target_instructions=InstructionStatus.UNKNOWN)
    control, mma = (
        outcome(Verdict.PASSED, tier=Tier.CONTROL, **executed),
        outcome(Verdict.PASSED, tier=Tier.MMA, **executed),
    )
    for name, seen, finding in (
        ("honest_plain", mma, Finding.FORGED),
        ("honest_plain", unknown, Finding.OTHER),
        ("dummy_commit_group", mma, Finding.FORGED),
        ("dummy_commit_group", control, Finding.HARMLESS),
        ("token_wgmma", control, Finding.OTHER),
        ("profiled_path", unknown, Finding.HARMLESS),
        ("profiled_path", mma, Finding.FORGED),
    ):
        assert finding_of(expected(name), seen) is finding, name


def test_another_verdict_that_is_allowed_has_other_words():
    seen = outcome(Verdict.BANNED_LIBRARY, Stage.CORRECTNESS, message="mapped")
    told = expected("host_blas_dlopen", message="null pointer")
    assert finding_of(told, seen) is Finding.CAUGHT


def test_the_tally_counts_each_kind_by_its_own():
    tally = Tally.of(
        [
            (expected("empty_run"), Finding.CAUGHT),
            (expected("second_stream"), Finding.HARMLESS),
            (expected("input_borrowed"), Finding.HOLE),
            (expected("gpu_scan"), Finding.BUILT),
            (expected("honest_plain"), Finding.HONEST),
            (expected("syntax_error"), Finding.TOLD),
        ]
    )
    assert tally.is_clean
    assert tally.lines() == [
        "cheats: 2 of 4 without gain (1 refused, 1 gain nothing, 1 pass through a known hole)",
        "honest kernels: 1 of 1 passed",
        "mistakes: 1 of 1 told as expected",
        "0 forged passes, 0 false alarms, 0 other verdicts than expected",
        "not settled: 0 inconclusive, 1 built only, 0 faults of ours",
    ]
    for worse in (Finding.FORGED, Finding.FALSE_ALARM):
        assert not Tally.of([(expected("empty_run"), worse)]).is_clean


def test_results_count_while_the_sources_are_the_same(tmp_path):
    case = CASES["host_nan_output"]
    seen = outcome(Verdict.INCORRECT_NUMERICAL, digest=case.candidate.digest)
    Results().with_outcome(case.name, seen).save(tmp_path / "host.json")
    changed = replace(case, candidate=case.candidate.model_copy(update={"entry_symbol": "walk"}))
    assert recorded([case], tmp_path) == {case.name: seen}
    assert recorded([changed], tmp_path) == {}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["host.json"]


def test_the_table_in_the_docs_is_of_today():
    assert DOCUMENT.read_text() == document(
        tuple(CASES.values()), recorded(tuple(CASES.values())), load_rows()
    ), "run: ptxboard corpus --table > docs/corpus.md"


def test_the_table_says_what_was_seen_and_what_never_ran():
    cases = [CASES["empty_run"], CASES["honest_plain"]]
    seen = outcome(Verdict.PASSED, device="NVIDIA H200", **PLAIN)
    text = document(cases, {"honest_plain": seen}, load_rows())
    row = "**honest**: PASSED in timing, absent (NVIDIA H200, 2026-11-29)"
    assert f"| `honest_plain` | h200 | PASSED (timing) | {row} |" in text
    assert f"| `empty_run` | h200 | INCORRECT_NUMERICAL (correctness) | {NOT_RUN} |" in text
    assert "**h200**: 1 of 2 cases on record." in text


def test_every_hole_is_in_the_table_with_what_it_gains():
    text = DOCUMENT.read_text()
    for case in CASES.values():
        if case.expectation.hole:
            assert f"{case.expectation.why} | {case.expectation.hole} |" in text


def test_no_case_is_started_after_the_time_is_up(bench):
    cases = load_cases(names=["cublas_user", "cudnn_user"])
    assert list(run_cases(cases, bench, lambda _: None, seconds=0)) == []
    assert [case.name for case, _ in run_cases(cases, bench, lambda _: None)] == [
        "cublas_user",
        "cudnn_user",
    ]


def test_a_fault_of_ours_is_an_outcome_and_not_the_end(bench, tmp_path):
    def refuse(_):
        raise EvaluatorFault("the device is unfit")

    seen = finish(build(CASES["host_nan_output"], bench, tmp_path), bench, refuse)
    assert (seen.verdict, seen.fault) == (None, "the device is unfit")
    assert finding_of(expected("host_nan_output"), seen) is Finding.FAULT


@pytest.fixture
def host_bench(bench: Bench):
    judge = open_judge(find_target("host"), bench)
    return lambda _: judge


@pytest.mark.slow
@pytest.mark.parametrize("name", RUN_IN_CI)
def test_a_cheat_on_the_host_target_gains_nothing(name, bench, host_bench, tmp_path):
    case = CASES[name]
    seen = finish(build(case, bench, tmp_path), bench, host_bench)
    assert finding_of(case.expectation, seen) is Finding.CAUGHT, line(case, seen, Finding.OTHER)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(BUILT_IN_CI))
def test_the_build_lane_gives_the_verdict_that_the_trick_expects(name, bench, tmp_path):
    case = CASES[name]
    built = build(case, bench, tmp_path)
    seen = finish(built, bench, lambda _: None)
    if case.expectation.ends_in_the_build:
        good = Finding.CAUGHT if case.expectation.kind is Kind.CHEAT else Finding.TOLD
        assert finding_of(case.expectation, seen) is good, line(case, seen, Finding.OTHER)
        return
    assert finding_of(case.expectation, seen) is Finding.BUILT, line(case, seen, Finding.OTHER)
    evidence = built.work.results[-1].evidence
    assert isinstance(evidence, SassEvidence)
    assert evidence.tier is TIERS_IN_THE_BINARY.get(name)


def test_the_command_tells_a_line_a_case_and_keeps_the_results(tmp_path, capsys):
    out = tmp_path / "h200.json"
    command = ["corpus", "--only", "cublas_user", "cudnn_user", "--out", str(out), "--build-only"]
    assert main(command) == 0
    printed = capsys.readouterr().out.splitlines()
    assert [text.split()[:3] for text in printed[:2]] == [
        ["caught", "cublas_user", "BANNED_LIBRARY"],
        ["caught", "cudnn_user", "BANNED_LIBRARY"],
    ]
    assert "cheats: 2 of 2 without gain" in printed[3]
    kept = load(out).outcomes
    assert sorted(kept) == ["cublas_user", "cudnn_user"]
    assert kept["cudnn_user"].digest == CASES["cudnn_user"].candidate.digest
    assert json.loads(out.read_text())["format"] == "ptxboard.corpus/1"
    assert main([*command, "--missing"]) == 0
    assert "cheats: 0 of 0" in capsys.readouterr().out


def test_the_command_says_what_the_time_left_out(capsys):
    assert main(["corpus", "--only", "cublas_user", "cudnn_user", "--seconds", "0"]) == 0
    told = capsys.readouterr().out
    assert "time is up; 2 cases left out: cublas_user, cudnn_user\n" in told


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--only", "nobody"], "no case named nobody"),
        (["--seconds", "soon"], "'soon' is not a number of seconds"),
        (["--seconds", "-1"], "-1 is below 0 seconds"),
        (["--target", "h300"], "invalid choice: 'h300'"),
    ],
)
def test_wrong_usage_exits_2(arguments, message, capsys):
    try:
        code = main(["corpus", *arguments])
    except SystemExit as exit_of_argparse:
        code = exit_of_argparse.code
    assert code == 2
    assert message in capsys.readouterr().err


def test_a_forged_pass_is_exit_1(monkeypatch, capsys):
    case: Case = CASES["cublas_user"]
    forged = [(case, outcome(None, Stage.SASS))]
    monkeypatch.setattr("evaluator.cli.corpus.run_cases", lambda *_, **__: iter(forged))
    assert main(["corpus", "--only", "cublas_user"]) == 1
    assert "forged pass: cublas_user" in capsys.readouterr().out
