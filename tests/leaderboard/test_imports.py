"""Reported turns and published figures: exact where they are good, refused whole where not."""

import gzip
import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from leaderboard.models import Entrant, ModelRun, ModelStanding, Trajectory, Turn
from leaderboard.services.imports import turns_import
from leaderboard.services.imports_notes import Notes, RunNote
from leaderboard.services.imports_published import PTXBENCH_RESULTS
from leaderboard.services.imports_reading import COLUMNS, ImportRefused
from leaderboard.services.standings import target_board
from leaderboard.services.standings_filters import read_filters
from leaderboard.services.standings_update import standing_values

EVIDENCE = Path(__file__).parents[1] / "evidence" / "published" / "ptxbench_turns.csv.gz"
PAPER = json.loads(PTXBENCH_RESULTS.read_text())["rows"]
MODELS = ("Gemini 3.1 Pro", "Claude Opus 4.8", "GLM-5.2", "Qwen3.6-27B")
GOOD = "opus-gemm,Opus,hopper,gemm_n7168_k5120,w,exp_000,0,Correct,0.5,900"
NOTES = Notes(
    source="A test.",
    level="schedule",
    scoring_version="test",
    target_speedup=1.2,
    turns=8,
    trajectories_per_variant=4,
)


@pytest.fixture
def paper(problems):
    call_command("import_turns", str(EVIDENCE), verbosity=0)
    call_command("load_published", verbosity=0)


@pytest.fixture
def write(tmp_path):
    def lines(*rows: str, header: str = ",".join(COLUMNS), name: str = "turns.csv") -> Path:
        path = tmp_path / name
        path.write_text("\n".join([header, *rows]) + "\n", encoding="utf-8")
        return path

    return lines


def row(**changes: object) -> str:
    values = dict(zip(COLUMNS, GOOD.split(","), strict=True))
    return ",".join(str(value) for value in (values | changes).values())


def board(target: str, **query: str):
    return target_board(target=target, filters=read_filters(query))


def percent(triplet):
    return [round(100 * one, 1) for one in (triplet.first, triplet.fourth, triplet.eighth)]


def speedups(triplet):
    values = (triplet.first, triplet.fourth, triplet.eighth)
    return [None if one is None else round(one, 3) for one in values]


def cells(target: str, trust: str):
    rows = board(target, trust=trust, level="schedule").rows
    return {
        (one.entrant.display_name, problem): cell
        for one in rows
        for problem, cell in one.cells.items()
    }


def test_the_board_gives_the_papers_unrestricted_triplets_in_all_forty_cells(paper):
    walked = 0
    for target in ("h100", "b200"):
        seen = cells(target, "self-reported")
        for told in (one for one in PAPER if one["target"] == target and one["model"] in MODELS):
            cell = seen[told["model"], told["problem"]]
            rates = [value or 0.0 for value in told["rate_percent"]["any"]]
            assert percent(cell.rates) == rates, told
            assert speedups(cell.bests) == told["best"]["any"], told
            walked += 1
    assert walked == 40


def test_reported_turns_tell_nothing_of_target_instructions(paper):
    cell = cells("h100", "self-reported")["Claude Opus 4.8", "gemm_n7168_k5120"]
    assert not cell.knows_instructions
    assert speedups(cell.target_rates) == [None, None, None]
    assert cell.target_fast is None


def test_the_papers_ablation_lands_at_its_levels(paper):
    found = {}
    for level in ("parameters", "functions"):
        (only,) = board("h100", trust="self-reported", level=level).rows
        cell = only.cells["mha_bwd_d128"]
        found[level] = (percent(cell.rates)[2], speedups(cell.bests)[2], cell.planned_turns)
    assert found == {"parameters": (26.0, 0.273, 96), "functions": (19.8, 0.542, 96)}


def test_runs_that_the_paper_does_not_count_are_here_and_count_on_no_board(paper):
    unranked = ModelRun.objects.exclude(unranked_reason="").order_by("name")
    assert [run.name for run in unranked] == ["2026-0609-2240", "2026-0609-2340"]
    assert Turn.objects.filter(trajectory__run__in=unranked).count() == 320
    assert not ModelStanding.objects.filter(newest_run__in=unranked).exists()


def test_a_run_of_a_task_that_we_lack_is_left_out_where_the_notes_say_so(problems, write):
    lacking = row(run="topk", definition="moe_topk_e256")
    runs = {"topk": RunNote(left_out_without_problem="another task")}
    done = turns_import(path=write(GOOD, lacking), notes=NOTES.model_copy(update={"runs": runs}))
    assert done.left_out == {"topk": "no problem moe_topk_e256 here: another task"}
    assert [run.name for run in done.runs] == ["opus-gemm"]


def test_published_target_triplets_stand_beside_and_are_never_ranked(paper):
    for told in PAPER:
        cell = cells(told["target"], "published")[told["model"], told["problem"]]
        assert percent(cell.target_rates) == [v or 0.0 for v in told["rate_percent"]["target"]]
        assert speedups(cell.target_bests) == told["best"]["target"]
        assert cell.source == f"PTXBench, arXiv 2608.17379, {told['source']}"
        assert cell.taken_turns is None
        assert cell.share is None
    both = board("h100", trust="all")
    assert {one.trust for one in both.published} == {"published"}
    assert {one.trust for one in both.ranked} == {"self-reported"}
    assert [one.rank for one in both.rows] == [*range(1, len(both.ranked) + 1)] + [None] * 11


def test_no_reported_row_is_on_the_board_of_what_was_measured(paper):
    assert board("h100").rows == ()


def test_loading_published_figures_twice_changes_nothing(paper):
    before = {str(standing_values(one)) for one in ModelStanding.objects.all()}
    call_command("load_published", verbosity=0)
    assert {str(standing_values(one)) for one in ModelStanding.objects.all()} == before


def test_a_rebuild_of_reported_runs_gives_equal_rows(paper, capsys):
    call_command("rebuild_standings")
    # 40 cells at the paper's level and two of its ablation
    assert capsys.readouterr().out == "42 standings; 0 rows new, gone or changed\n"


def test_the_same_file_again_is_known_and_other_turns_of_a_run_are_refused(problems, write):
    turns_import(path=write(GOOD), notes=NOTES)
    again = turns_import(path=write(GOOD), notes=NOTES)
    assert (again.runs, again.known, again.turn_count) == ([], 1, 0)
    with pytest.raises(ImportRefused, match="line 2, run: 'opus-gemm'; the run is here already"):
        turns_import(path=write(row(speedup="0.6")), notes=NOTES)


def test_a_run_becomes_turns_in_a_chain_without_endpoint_or_sources(problems, write):
    path = write(
        GOOD,
        row(turn=1, correctness="Extraction error", speedup="0.0"),
        row(turn=2, correctness="Runtime error", speedup=0),
        row(trajectory="exp_001", speedup="1.3"),
    )
    (run,) = turns_import(path=path, notes=NOTES).runs
    assert (run.trust, run.base_url, run.api, run.key_ciphertext) == ("self-reported", "", "", "")
    assert run.digest == run.settings_digest
    first, second, third = Turn.objects.filter(trajectory__number=1).order_by("number")
    assert [one.verdict for one in (first, second, third)] == ["PASSED", "", "RUNTIME_ERROR"]
    assert [one.extraction_state for one in (first, second)] == ["EXTRACTED", "NO_CODE"]
    assert (second.parent, third.parent) == (first, second)
    assert (first.previous_digest, second.previous_digest) == (run.digest, first.digest)
    assert third.computed_digest == third.digest
    assert third.extraction_message == "reported as: Runtime error"
    endings = run.trajectories.order_by("number").values_list("ending", flat=True)
    assert list(endings) == ["OUT_OF_CONTEXT", "TARGET_MET"]
    standing = ModelStanding.objects.get()
    assert (standing.planned_turns, standing.taken_turns, standing.rate_1) == (16, 4, 1.0)
    assert standing.reasoning_tokens == 3600


def test_trajectories_in_fours_are_prompt_variants(problems, write):
    lines = [row(trajectory=f"exp_{n:03d}", turn=0) for n in range(6)]
    (run,) = turns_import(path=write(*lines), notes=NOTES).runs
    seen = run.trajectories.in_order().values_list("variant__slug", "number")
    first = [("prompt-1", number) for number in (1, 2, 3, 4)]
    assert list(seen) == [*first, ("prompt-2", 1), ("prompt-2", 2)]


def test_a_model_of_two_reporters_is_two_entrants(problems, write):
    turns_import(path=write(GOOD), notes=NOTES, reporter="lab-a")
    turns_import(path=write(GOOD), notes=NOTES, reporter="lab-b")
    assert Entrant.objects.filter(display_name="Opus").count() == 2


def test_a_person_does_not_get_reports_in_their_name(problems, write, alice):
    with pytest.raises(CommandError, match="'alice' is the account of a person"):
        call_command("import_turns", str(write(GOOD)), "--by", "alice")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"speedup": "-1"}, "line 3, speedup: '-1'; expected a number from 0 to 1000"),
        ({"speedup": "nan"}, "line 3, speedup: 'nan'; expected a number from 0 to 1000"),
        ({"speedup": "1e9"}, "line 3, speedup: '1e9'; expected a number from 0 to 1000"),
        ({"speedup": "inf"}, "line 3, speedup: 'inf'; expected a number from 0 to 1000"),
        ({"speedup": "0.0"}, "line 3, speedup: '0.0'; a correct turn has a speedup above 0"),
        ({"correctness": "Other error"}, "a turn that is 'Other error' has speedup 0"),
        ({"correctness": "correct"}, "line 3, correctness: 'correct'; expected one of: Correct,"),
        ({"definition": "gemm"}, "line 3, definition: 'gemm'; no such problem here; known: gemm_"),
        ({"arch": "volta"}, "line 3, arch: 'volta'; expected one of: hopper, blackwell"),
        ({"turn": "-1"}, "line 3, turn: '-1'; expected a whole number from 0 to 31"),
        ({"turn": "32"}, "line 3, turn: '32'; expected a whole number from 0 to 31"),
        ({"turn": "1.5"}, "line 3, turn: '1.5'; expected a whole number"),
        ({"turn": "2"}, "line 3, turn: 'opus-gemm exp_000 2'; turn 1, which it follows, is miss"),
        ({"turn": "0"}, "line 3, turn: 'opus-gemm exp_000 0'; the turn is in line 2 already"),
        ({"reasoning_tokens": "-5"}, "line 3, reasoning_tokens: '-5'; expected a whole number"),
        ({"reasoning_tokens": "99999999999"}, "expected a whole number from 0 to 10000000"),
        ({"run": ""}, "line 3, run: ''; expected 1 to 100 characters"),
        ({"run": "r" * 101}, "expected 1 to 100 characters"),
        ({"model": "Sonnet"}, "line 3, model: 'Sonnet'; run 'opus-gemm' began with 'Opus' in li"),
        ({"arch": "blackwell"}, "line 3, arch: 'b200'; run 'opus-gemm' began with 'h100' in lin"),
    ],
)
def test_it_refuses_a_bad_row_with_line_column_value_and_limit(problems, write, changes, said):
    path = write(GOOD, row(**({"turn": "1"} | changes)))
    with pytest.raises(ImportRefused) as refused:
        turns_import(path=path, notes=NOTES)
    assert said in str(refused.value)
    assert not ModelRun.objects.exists()
    assert not Entrant.objects.exists()


def test_it_names_every_bad_row_up_to_fifty(problems, write):
    lines = [row(turn=n % 30, speedup="nan", trajectory=f"exp_{n}") for n in range(80)]
    with pytest.raises(ImportRefused) as refused:
        turns_import(path=write(*lines), notes=NOTES)
    assert len(refused.value.errors) == 50


def test_a_bad_last_row_leaves_nothing_of_the_runs_before_it(problems, write):
    other = row(run="glm-gemm", model="GLM", turn=0)
    with pytest.raises(ImportRefused):
        turns_import(path=write(GOOD, other, row(run="glm-gemm", model="GLM", turn=5)), notes=NOTES)
    counts = [model.objects.count() for model in (ModelRun, Trajectory, Turn, Entrant)]
    assert counts == [0, 0, 0, 0]


def test_a_file_that_is_no_table_is_refused_in_words(problems, write, tmp_path):
    for path, said in (
        (
            write(GOOD, header="run,model", name="1.csv"),
            "line 1, header: 'run, model'; expected exactly the",
        ),
        (write(name="2.csv"), "the file holds no turn"),
        (write("a,b", name="3.csv"), "the line has too few values"),
        (write(GOOD, name="turns.csv.gz"), "expected a gzip file, as its name says"),
        (write(GOOD.replace("Opus", "O\x00"), name="4.csv"), "line 2, file: 'a NUL character'"),
    ):
        with pytest.raises(ImportRefused) as refused:
            turns_import(path=path, notes=NOTES)
        assert said in str(refused.value)
    latin = tmp_path / "latin.csv"
    latin.write_bytes(",".join(COLUMNS).encode() + b"\n\xff\xfe")
    with pytest.raises(ImportRefused, match="byte 0xff at offset 88'; expected UTF-8"):
        turns_import(path=latin, notes=NOTES)


def test_a_packed_file_that_unpacks_without_end_is_refused(problems, tmp_path, monkeypatch):
    monkeypatch.setattr("leaderboard.services.imports_reading.MAX_BYTES", 1000)
    path = tmp_path / "bomb.csv.gz"
    path.write_bytes(gzip.compress(b"a" * 5000))
    with pytest.raises(ImportRefused, match="at most 1000 bytes unpacked"):
        turns_import(path=path, notes=NOTES)


def test_a_name_with_markup_is_stored_as_it_is(problems, write):
    name = "<script>alert(1)</script> \u202e\U0001f600"
    turns_import(path=write(row(model=name)), notes=NOTES)
    assert Entrant.objects.get().display_name == name


def test_a_run_that_notes_keep_off_the_board_has_no_standing(problems, write):
    runs = {"opus-gemm": RunNote(unranked="a trial")}
    turns_import(path=write(GOOD), notes=NOTES.model_copy(update={"runs": runs}))
    assert ModelRun.objects.get().unranked_reason == "a trial"
    assert not ModelStanding.objects.exists()


def test_published_figures_that_cannot_be_are_refused_whole(problems, tmp_path):
    good = json.loads(PTXBENCH_RESULTS.read_text())
    for change, said in (
        ({"problem": "gemm"}, r"rows\[0\].problem: no problem 'gemm'"),
        ({"target": "host"}, r"rows\[0\].target: 'host' is not one of: h200"),
        ({"rate_percent": {"target": [101, 0, 0], "any": [0, 0, 0]}}, "rate_percent"),
        (dict(good["rows"][1]), r"rows\[1\]: .* is told twice"),
    ):
        path = tmp_path / "bad.json"
        rows = [{**good["rows"][0], **change}, *good["rows"][1:]]
        path.write_text(json.dumps({**good, "rows": rows}))
        with pytest.raises(CommandError, match=said):
            call_command("load_published", str(path))
    assert not ModelStanding.objects.exists()
    assert not Entrant.objects.exists()
