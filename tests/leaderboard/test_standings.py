"""Standings: kept up with each turn, equal to a rebuild, and ranked as the board says."""

import json

import pytest
from django.core.management import call_command
from django.db import connection, transaction
from django.db.utils import IntegrityError
from django.test.utils import CaptureQueriesContext

from evaluator.metrics.turns import THRESHOLDS, Triplet, best_speedup, correctness_rate, fast_p
from leaderboard.models import Evaluation, ModelRun, ModelStanding, RunTally, Trajectory
from leaderboard.refusals import InvalidFilter
from leaderboard.services.evaluations import evaluation_correct
from leaderboard.services.model_runs import closing
from leaderboard.services.model_runs.control import model_run_cancel, trajectory_cancel
from leaderboard.services.model_runs.outcomes import outcomes_of
from leaderboard.services.standings import problem_curves, target_board
from leaderboard.services.standings_filters import BoardFilters, read_filters
from leaderboard.services.standings_update import (
    standing_update,
    standing_values,
    standings_rebuild,
    triplet_columns,
)
from tests.leaderboard import factories, run_factories
from tests.leaderboard.runs import RUNS, advance, evaluate, play, run_body, the_run, the_trajectory

GEMM, FORWARD = "gemm_n7168_k5120", "mha_with_lse_d128"


def standing(**columns) -> ModelStanding:
    return ModelStanding.objects.get(**columns)


def values() -> list[dict]:
    rows = ModelStanding.objects.order_by("pk")
    return sorted((standing_values(row) for row in rows), key=str)


def rebuilt() -> list[dict]:
    standings_rebuild()
    return values()


def kernels(run: ModelRun, *speedups: float | None, number: int = 1, variant="no-schedule"):
    """Turns of one trajectory: a speedup each, None for a kernel that does not compile."""
    place = run_factories.trajectory(run, number, variant)
    broken = run_factories.failed(run, "compilation", "COMPILE_ERROR")
    for speedup in speedups:
        results = broken if speedup is None else None
        run_factories.turn(place, kernel=factories.KERNEL, speedup=speedup, results=results)
    return place


@pytest.fixture
def run(problems, alice):
    """Two variants x two trajectories x 8 turns: one trajectory each with turns."""
    made = run_factories.run(
        problems[GEMM],
        owner=alice,
        variants=("no-schedule", "split-k"),
        trajectories=2,
        turns=8,
    )
    kernels(made, None, 0.5, 0.95)
    kernels(made, 1.1, variant="split-k")
    return made


class TestAgainstTheMachine:
    pytestmark = pytest.mark.django_db(transaction=True)

    @pytest.fixture
    def start(self, problems, alice_api, model):
        def make(**more):
            answer = alice_api.post(RUNS, run_body(model.url, **more), format="json")
            assert answer.status_code == 201, answer.content

        return make

    def test_each_closed_turn_moves_the_standing_with_it(self, start, model, machine, doorbell):
        model.say("fail compilation COMPILE_ERROR", "speedup 0.7", "speedup 1.3")
        start(turns=8)
        seen = []
        while advance(doorbell) + evaluate(machine):
            found = ModelStanding.objects.first()
            if found is not None:
                seen.append((found.taken_turns, found.planned_turns, found.best_8, found.is_final))
                assert values() == rebuilt()
        steps = [step for place, step in enumerate(seen) if step not in seen[:place]]
        assert steps == [
            (1, 1, None, False),
            (2, 2, pytest.approx(0.7), False),
            (3, 8, pytest.approx(1.3), True),
        ]
        assert (standing().rate_1, standing().rate_4, standing().rate_8) == (0, 0.5, 0.25)

    def test_tokens_and_cost_of_the_run_are_the_standings(self, start, model, machine, doorbell):
        model.say("speedup 0.7", "speedup 0.8", "speedup 0.9")
        start(prices={"prompt_usd": 1.0, "completion_usd": 2.0})
        play(doorbell, machine)
        found, turns = standing(), list(the_trajectory().turns.all())
        assert found.prompt_tokens == sum(turn.prompt_tokens for turn in turns) > 0
        assert found.completion_tokens == sum(turn.completion_tokens for turn in turns) > 0
        assert found.cost_nano_usd == 1000 * found.prompt_tokens + 2000 * found.completion_tokens
        assert (found.newest_run, found.run_count, found.trust) == (the_run(), 1, "verified")

    def test_a_close_that_is_rolled_back_leaves_the_standing(
        self, start, model, machine, doorbell, monkeypatch
    ):
        model.say("speedup 0.7", "speedup 0.8")
        start()
        advance(doorbell)
        evaluate(machine)
        assert not ModelStanding.objects.exists()

        def breaks(*_):
            raise RuntimeError("the disk is full")

        monkeypatch.setattr(closing, "_go_on", breaks)
        with pytest.raises(RuntimeError):
            closing.turn_close(str(the_trajectory().pk))
        assert not ModelStanding.objects.exists()
        monkeypatch.undo()

    def test_a_cancelled_trajectory_keeps_its_plan(self, start, model, machine, doorbell, alice):
        model.say("speedup 0.7", "speedup 0.8")
        start(turns=4)
        advance(doorbell)
        evaluate(machine)
        advance(doorbell)
        assert standing().planned_turns == 1
        trajectory_cancel(trajectory=the_trajectory(), user=alice)
        found = standing()
        assert (found.planned_turns, found.taken_turns, found.rate_4) == (4, 1, 0.25)
        assert found.is_final
        assert values() == rebuilt()

    def test_one_cancelled_trajectory_of_a_run_that_goes_on_has_its_plan_counted(
        self, start, model, machine, doorbell, alice
    ):
        model.say("speedup 0.7", "speedup 0.8")
        start(turns=4, trajectories=2)
        advance(doorbell)
        evaluate(machine)
        advance(doorbell)
        assert standing().planned_turns == 2
        trajectory_cancel(trajectory=the_run().trajectories.get(number=1), user=alice)
        assert (standing().planned_turns, standing().is_final) == (5, False)
        assert values() == rebuilt()

    def test_a_cancelled_run_is_final_with_what_it_planned(
        self, start, model, machine, doorbell, alice
    ):
        model.say("speedup 0.7", "speedup 0.8")
        start(turns=4, trajectories=2)
        advance(doorbell)
        evaluate(machine)
        advance(doorbell)
        assert not standing().is_final
        model_run_cancel(run=the_run(), user=alice)
        assert (standing().planned_turns, standing().is_final) == (8, True)
        assert values() == rebuilt()


def test_its_columns_are_the_papers_metrics_of_its_turns(run):
    run_factories.finish(run)
    standing_update(run)
    found, outcomes = standing(), outcomes_of(run)
    for limit in (1, 4, 8):
        assert getattr(found, f"rate_{limit}") == correctness_rate(outcomes, at_most=limit)
        assert getattr(found, f"best_{limit}") == best_speedup(outcomes, at_most=limit)
    wanted = [fast_p(outcomes, p, at_most=8) for p in THRESHOLDS]
    assert json.loads(found.fast_json) == [wanted, wanted]
    assert (found.planned_turns, found.taken_turns) == (32, 4)


def test_a_trajectory_that_goes_on_has_planned_what_it_has_taken(run):
    standing_update(run)
    assert (standing().planned_turns, standing().is_final) == (4, False)
    run_factories.end(run_factories.trajectory(run), "OUT_OF_CONTEXT")
    standing_update(run)
    assert standing().planned_turns == 9


def test_a_trajectory_that_infrastructure_ended_planned_what_it_took(run):
    run_factories.finish(run)
    Trajectory.objects.filter(run=run, number=2).update(state="STOPPED", ending="INFRA")
    standing_update(run)
    assert standing().planned_turns == 16


def test_a_lost_turn_is_excluded_and_its_tokens_are_counted(run):
    place = run_factories.trajectory(run)
    run_factories.turn(place, kernel=factories.KERNEL, results=[], excluded="disk full")
    standing_update(run)
    found = standing()
    assert (found.taken_turns, found.excluded_turns, found.planned_turns) == (4, 1, 4)
    assert found.prompt_tokens == 5 * 21_000


def test_withdrawing_an_evaluation_takes_its_turn_out_and_restoring_brings_it_back(run, carol):
    standing_update(run)
    before = values()
    best = Evaluation.objects.order_by("-speedup").first()
    evaluation_correct(evaluation=best, valid=False, reason="a leak", user=carol)
    assert (standing().best_8, standing().rate_1) == (pytest.approx(0.95), 0)
    assert values() == rebuilt()
    best.refresh_from_db()
    evaluation_correct(evaluation=best, valid=True, reason="it was none", user=carol)
    assert values() == before


def test_runs_of_one_cell_add_up_and_other_conditions_stay_apart(run, problems, alice):
    for columns in ({}, {"level": "parameters"}, {"guidance": True}, {"language": "triton"}):
        other = run_factories.run(problems[GEMM], owner=alice, turns=8, **columns)
        kernels(other, 0.7)
        run_factories.finish(other)
        standing_update(other)
    standing_update(run)
    seen = ModelStanding.objects.values_list("level", "language", "run_count", "planned_turns")
    assert sorted(seen) == [
        ("parameters", "cuda", 1, 8),
        ("schedule", "cuda", 2, 12),
        ("schedule", "triton", 1, 8),
        ("schedule+guidance", "cuda", 1, 8),
    ]
    assert values() == rebuilt()


def test_the_newest_run_is_the_one_that_was_made_last(run, problems, alice):
    later = run_factories.run(
        problems[GEMM], owner=alice, created_at=factories.NOW.replace(year=2027)
    )
    kernels(later, 0.7)
    standing_update(later)
    standing_update(run)
    assert standing().newest_run == later


def test_a_run_without_a_closed_turn_has_no_standing(problems, alice):
    standing_update(run_factories.run(problems[GEMM], owner=alice))
    assert not ModelStanding.objects.exists()
    assert not RunTally.objects.exists()


def test_a_run_that_is_taken_off_the_boards_leaves_them(run):
    standing_update(run)
    run.unranked_reason = "its prompts held the answer"
    run.save()
    standing_update(run)
    assert not ModelStanding.objects.exists()


def test_a_rebuild_mends_what_was_changed_by_hand_and_says_so(run, capsys):
    standing_update(run)
    before = values()
    ModelStanding.objects.update(rate_8=1.0)
    call_command("rebuild_standings")
    assert capsys.readouterr().out == "1 standings; 2 rows new, gone or changed\n"
    assert values() == before


def test_a_turn_costs_the_same_however_many_others_the_site_holds(run, problems, alice):
    def queries() -> int:
        with (
            CaptureQueriesContext(
                connection,
            ) as seen,
            transaction.atomic(),
        ):
            standing_update(run)
        return len(seen)

    standing_update(run)
    before = queries()
    for name in ("other-model", "another"):
        other = run_factories.run(problems[GEMM], owner=alice, model=name, turns=8)
        kernels(other, 0.5, 0.6, 0.7)
        standing_update(other)
    assert queries() == before


def test_the_database_knows_each_cell_once(run):
    standing_update(run)
    again = standing()
    again.pk = None
    with pytest.raises(IntegrityError), transaction.atomic():
        again.save(force_insert=True)


def test_the_database_refuses_a_published_row_without_its_source(run):
    standing_update(run)
    with pytest.raises(IntegrityError), transaction.atomic():
        ModelStanding.objects.update(trust="published")


def ranked(problems, alice, results: dict[str, dict[str, tuple]], **filters):
    """A run for each model and problem with its turns; the board."""
    for model, found in results.items():
        for name, speedups in found.items():
            run = run_factories.run(problems[name], owner=alice, model=model, turns=8)
            kernels(run, *speedups)
            run_factories.finish(run)
            standing_update(run)
    return target_board(target="h200", filters=BoardFilters(**filters))


def test_it_ranks_by_the_mean_share_and_a_missing_problem_counts_as_none(problems, alice):
    board = ranked(
        problems,
        alice,
        {
            "half": {GEMM: (1.2, 1.2, 1.2, 1.2)},
            "both": {GEMM: (1.2, 1.2, 1.2), FORWARD: (1.1, 1.1)},
        },
    )
    assert board.problems == (GEMM, FORWARD)
    seen = [(row.rank, row.entrant.display_name, row.score) for row in board.rows]
    assert seen == [(1, "both", 5 / 16), (2, "half", 4 / 16)]
    assert [row.is_complete for row in board.rows] == [True, False]


def test_complete_only_leaves_out_who_lacks_a_problem_or_still_runs(problems, alice):
    results = {"half": {GEMM: (1.2,)}, "both": {GEMM: (1.0,), FORWARD: (1.1,)}}
    board = ranked(problems, alice, results, complete=True)
    assert [(row.rank, row.entrant.display_name) for row in board.rows] == [(1, "both")]
    ModelStanding.objects.filter(problem_name=FORWARD).update(is_final=False, updated_at=NEXT)
    assert target_board(target="h200", filters=BoardFilters(complete=True)).rows == ()


NEXT = factories.NOW.replace(year=2030)


def test_equal_models_share_a_rank_and_the_next_counts_them(problems, alice):
    board = ranked(problems, alice, {"a": {GEMM: (1.0,)}, "b": {GEMM: (1.0,)}, "c": {GEMM: (0.2,)}})
    assert [row.rank for row in board.rows] == [1, 1, 3]


def test_the_pinned_p_ranks_the_table_anew(problems, alice):
    results = {"steady": {GEMM: (0.6, 0.6, 0.6)}, "peak": {GEMM: (1.3, None, None)}}
    first = ranked(problems, alice, results, p=0.5)
    assert [row.entrant.display_name for row in first.rows] == ["steady", "peak"]
    other = target_board(target="h200", filters=BoardFilters(p=0.61))
    assert [(r.entrant.display_name, r.score) for r in other.rows] == [
        ("peak", 1 / 8),
        ("steady", 0),
    ]


def test_a_share_that_is_kept_equals_the_one_from_the_curve(problems, alice):
    ranked(problems, alice, {"a": {GEMM: (0.4, 0.6, None, 1.2), FORWARD: (0.9, 0.91)}})
    for p in THRESHOLDS:
        kept = target_board(target="h200", filters=BoardFilters(p=p))
        read = target_board(target="h200", filters=BoardFilters(p=p, at_most=9))
        assert kept.rows[0].score == read.rows[0].score


def test_a_turn_limit_counts_only_the_first_turns(problems, alice):
    board = ranked(problems, alice, {"a": {GEMM: (None, 1.2, 1.2)}}, at_most=2)
    assert board.rows[0].score == 1 / 2


def test_unknown_instructions_rank_last_and_are_no_zero(problems, alice):
    ranked(problems, alice, {"seen": {GEMM: (0.2,)}, "blind": {GEMM: (1.2,)}})
    Evaluation.objects.filter(speedup__gt=1).update(instruction_status="unknown")
    standings_rebuild()
    board = target_board(target="h200", filters=BoardFilters(instructions=True))
    first, last = board.rows
    other = target_board(target="h200", filters=BoardFilters(instructions=True, p=0.33))
    assert [row.score for row in other.rows] == [0, None]
    assert (first.entrant.display_name, first.score) == ("seen", 0)
    assert (last.entrant.display_name, last.score, last.rank) == ("blind", None, 2)
    blind = last.cells[GEMM]
    assert blind.target_rates == Triplet(first=None, fourth=None, eighth=None)
    assert blind.target_fast is None
    assert blind.fast == (1 / 8,) * 5


def test_a_board_is_four_queries_and_two_while_nothing_changes(problems, alice):
    ranked(problems, alice, {"a": {GEMM: (1.0,)}, "b": {FORWARD: (1.0,)}}, p=0.123)
    for p, expected in ((0.124, 4), (0.124, 2)):
        with CaptureQueriesContext(connection) as seen:
            target_board(target="h200", filters=BoardFilters(p=p))
        assert len(seen) == expected


def test_the_problems_of_another_version_are_not_on_the_board(problems, alice):
    board = ranked(problems, alice, {"a": {GEMM: (1.0,)}})
    assert len(board.rows) == 1
    ModelStanding.objects.update(measured_digest="0" * 64, updated_at=NEXT)
    assert target_board(target="h200").rows == ()


def test_curves_of_a_problem_come_with_bands_over_variants(run, problems):
    run_factories.finish(run)
    standing_update(run)
    (one,) = problem_curves(target="h200", problem=problems[GEMM], filters=BoardFilters())
    band = one.curve.band(0.9, at_most=8)
    assert (band.low, band.high, band.mean) == (1 / 16, 1 / 16, 1 / 16)
    band = one.curve.band(1.0, at_most=8)
    assert (band.low, band.high, band.mean) == (0, 1 / 16, 1 / 32)
    assert one.curve.band_points(at_most=8)[-1] == (
        pytest.approx(1.1),
        one.curve.band(one.curve.bests().eighth, at_most=8),
    )


@pytest.mark.parametrize(
    ("query", "pointer", "said"),
    [
        ({"p": "fast"}, "p", "'fast' is no speedup; give a number from 0 to 1000"),
        ({"p": "nan"}, "p", "'nan' is no speedup"),
        ({"p": "-0.1"}, "p", "'-0.1' is no speedup"),
        ({"p": "1e400"}, "p", "'1e400' is no speedup"),
        ({"at_most": "0"}, "at_most", "'0' is no turn limit; give a whole number from 1 to 32"),
        ({"at_most": "\u0663"}, "at_most", "is no turn limit"),
        ({"trust": "ours"}, "trust", "there is no trust 'ours'; known: published, self-reported"),
        ({"language": "ptx"}, "language", "there is no language 'ptx'; known: cuda"),
        ({"level": "all"}, "level", "there is no level 'all'; known: parameters"),
        ({"scoring_version": "1' OR 1"}, "scoring_version", "is no scoring version"),
        ({"complete": "maybe"}, "complete", "'maybe' is neither yes nor no"),
    ],
)
def test_a_filter_that_cannot_be_is_refused_in_words(query, pointer, said):
    with pytest.raises(InvalidFilter) as refused:
        read_filters(query)
    (error,) = refused.value.errors
    assert error.pointer == pointer
    assert said in error.message


def test_filters_that_are_left_out_or_empty_are_the_defaults():
    assert read_filters({"p": "", "sort": "name"}) == BoardFilters()
    assert read_filters({"trust": "measured"}).trust == ("verified", "reproduced")
    assert read_filters({"trust": "all"}).is_measured is False


def test_a_triplet_has_three_columns():
    assert triplet_columns("rate", Triplet(first=1, fourth=None, eighth=3)) == {
        "rate_1": 1,
        "rate_4": None,
        "rate_8": 3,
    }
