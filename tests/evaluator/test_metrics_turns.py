"""Metrics over turns: the paper's own numbers from the authors' rows, and the edges by hand."""

import csv
from pathlib import Path

import pytest

from evaluator.metrics.outcomes import TrajectoryOutcome, TurnOutcome, planned_turns
from evaluator.metrics.turns import (
    Band,
    Triplet,
    best_speedup,
    correctness_rate,
    fast_p,
    over_variants,
    triplet,
)

ROWS = Path(__file__).parents[1] / "evidence" / "metrics" / "claude_opus_48_h100_gemm.csv"


def outcome(number, speedup=None, instructions=True):
    return TurnOutcome(
        number=number, correct=speedup is not None, speedup=speedup, instructions=instructions
    )


@pytest.fixture(scope="module")
def claude():
    """Claude Opus 4.8 on GEMM, H100: 12 trajectories of 8 turns; the target column is unknown."""
    with ROWS.open(newline="") as file:
        rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
    turns: dict[str, list[TurnOutcome]] = {}
    for row in rows:
        correct = row["correctness"] == "Correct"
        turns.setdefault(row["trajectory"], []).append(
            TurnOutcome(
                number=int(row["turn"]) + 1,
                correct=correct,
                speedup=float(row["speedup"]) if correct else None,
            )
        )
    return [
        TrajectoryOutcome(variant=f"v{place // 4}", planned=8, turns=tuple(found))
        for place, found in enumerate(turns.values())
    ]


def test_the_authors_rows_give_the_known_fast_p(claude):
    assert planned_turns(claude) == 96
    seen = [round(fast_p(claude, p), 3) for p in (0, 0.5, 0.75, 0.9, 1.0)]
    assert seen == [0.948, 0.938, 0.760, 0.323, 0]


def test_the_authors_rows_give_the_triplets_of_the_papers_tables(claude):
    rates = triplet(lambda limit: round(100 * correctness_rate(claude, at_most=limit), 1))
    assert rates == Triplet(first=91.7, fourth=95.8, eighth=94.8)


def test_unknown_instructions_never_enter_the_numerator(claude):
    assert fast_p(claude, 0, instructions=True) == 0
    assert best_speedup(claude, instructions=True) is None


def test_fast_p_is_strict():
    one = [TrajectoryOutcome(variant="a", planned=1, turns=(outcome(1, 0.5),))]
    assert fast_p(one, 0.5) == 0
    assert fast_p(one, 0.4999) == 1


def test_turns_that_were_not_taken_stay_in_the_denominator():
    early = [TrajectoryOutcome(variant="a", planned=8, turns=(outcome(1, 1.3),))]
    assert fast_p(early, 1.0) == 0.125
    assert fast_p(early, 1.0, at_most=1) == 1
    assert correctness_rate(early, at_most=4) == 0.25


def test_a_turn_without_target_instructions_counts_only_without_them():
    turns = (outcome(1, 2.0, instructions=False), outcome(2, 0.8), outcome(3))
    one = [TrajectoryOutcome(variant="a", planned=4, turns=turns)]
    assert correctness_rate(one) == 0.5
    assert correctness_rate(one, instructions=True) == 0.25
    assert best_speedup(one) == 2.0
    assert best_speedup(one, instructions=True) == 0.8
    assert best_speedup(one, at_most=1, instructions=True) is None


def test_nothing_planned_has_no_share_instead_of_zero():
    lost = [TrajectoryOutcome(variant="a", planned=0)]
    assert fast_p(lost, 0) is None
    assert correctness_rate([]) is None
    assert over_variants(lost, lambda some: fast_p(some, 0)) is None


def test_a_correct_turn_whose_time_is_unknown_is_correct_and_not_fast():
    turn = TurnOutcome(number=1, correct=True)
    one = [TrajectoryOutcome(variant="a", planned=1, turns=(turn,))]
    assert correctness_rate(one) == 1
    assert fast_p(one, 0) == 0


def test_the_band_goes_over_prompt_variants():
    some = [
        TrajectoryOutcome(variant="a", planned=1, turns=(outcome(1, 1.0),)),
        TrajectoryOutcome(variant="b", planned=1),
        TrajectoryOutcome(variant="b", planned=1, turns=(outcome(1, 0.7),)),
    ]
    band = over_variants(some, lambda variant: fast_p(variant, 0.6))
    assert band == Band(mean=0.75, low=0.5, high=1.0)
