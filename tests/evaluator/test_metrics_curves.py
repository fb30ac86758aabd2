"""Curves say what the turns say, for every p and limit, however they are added up."""

import json
import math
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.metrics.curves import Curve, curve_from_json, curve_of, curve_sum
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

SPEEDUPS = st.one_of(st.none(), st.floats(0.01, 3), st.sampled_from([0.5, 0.75, 0.9, 1.0]))
LIMITS = st.one_of(st.none(), st.integers(1, 9))
EDGES = st.one_of(st.floats(0, 3), st.sampled_from([0, 0.5, 0.75, 0.9, 1.0]))


@st.composite
def trajectory(draw: st.DrawFn) -> TrajectoryOutcome:
    planned = draw(st.integers(0, 8))
    taken = draw(st.integers(0, planned))
    turns = tuple(
        TurnOutcome(
            number=number,
            correct=(correct := draw(st.booleans())),
            speedup=draw(SPEEDUPS) if correct else None,
            instructions=draw(st.sampled_from([True, False, None])),
        )
        for number in range(1, taken + 1)
    )
    variant = draw(st.sampled_from(["none", "ping-pong", "split-k"]))
    return TrajectoryOutcome(variant=variant, planned=planned, turns=turns)


TRAJECTORIES = st.lists(trajectory(), max_size=8)


@given(TRAJECTORIES, EDGES, LIMITS, st.booleans())
def test_a_curve_gives_fast_p_at_any_p_and_limit(some, p, at_most, instructions):
    steps = curve_of(some).steps(at_most=at_most, instructions=instructions)
    same = {"at_most": at_most, "instructions": instructions}
    assert steps.fast_p(p) == fast_p(some, p, **same)
    assert steps.correctness_rate == correctness_rate(some, **same)
    assert steps.best_speedup == best_speedup(some, **same)
    assert steps.planned == planned_turns(some, at_most)


@given(TRAJECTORIES, EDGES, LIMITS, st.booleans())
def test_its_band_is_that_of_the_variants(some, p, at_most, instructions):
    same = {"at_most": at_most, "instructions": instructions}
    expected = over_variants(some, lambda variant: fast_p(variant, p, **same))
    seen = curve_of(some).band(p, **same)
    if expected is None:
        assert seen is None
        return
    assert (seen.low, seen.high) == (expected.low, expected.high)
    assert seen.mean == pytest.approx(expected.mean)


@given(st.lists(TRAJECTORIES, max_size=4))
def test_curves_add_up_to_the_curve_of_all(lists):
    whole = curve_of([one for some in lists for one in some])
    assert curve_sum(curve_of(some) for some in lists) == whole
    assert curve_sum(reversed([curve_of(some) for some in lists])) == whole


@given(TRAJECTORIES, st.randoms(use_true_random=False))
def test_the_order_of_trajectories_does_not_matter(some, dice: random.Random):
    mixed = list(some)
    dice.shuffle(mixed)
    assert curve_of(mixed) == curve_of(some)


@given(TRAJECTORIES)
def test_a_curve_survives_its_json(some):
    curve = curve_of(some)
    assert curve_from_json(json.loads(json.dumps(curve.to_json()))) == curve


@given(TRAJECTORIES, LIMITS)
def test_steps_fall_and_hold_until_the_next_point(some, at_most):
    steps = curve_of(some).steps(at_most=at_most)
    points = steps.points()
    shares = [share for _, share in points]
    assert shares == sorted(shares, reverse=True)
    for (p, share), (following, _) in pairwise(points):
        assert steps.fast_p(math.nextafter(following, 0)) == steps.fast_p(p) == share
    if points:
        assert points[0][0] == 0
        assert points[-1][1] == 0 or not steps.speedups


@given(TRAJECTORIES, EDGES, LIMITS)
def test_the_band_of_a_curve_holds_between_its_points(some, p, at_most):
    curve = curve_of(some)
    points = curve.band_points(at_most=at_most)
    band = curve.band(p, at_most=at_most)
    if band is None:
        assert points == []
        return
    _, seen = [point for point in points if point[0] <= p][-1]
    assert (seen.low, seen.high) == (band.low, band.high)


@given(TRAJECTORIES, EDGES)
def test_target_instructions_only_ever_lower_a_share(some, p):
    curve = curve_of(some)
    whole, part = curve.steps(), curve.steps(instructions=True)
    assert part.correct <= whole.correct
    assert whole.fast_p(p) is None or part.fast_p(p) <= whole.fast_p(p)


@given(TRAJECTORIES)
def test_the_triplets_are_those_of_the_turns(some):
    curve = curve_of(some)
    assert curve.rates() == triplet(lambda limit: correctness_rate(some, at_most=limit))
    assert curve.bests(instructions=True) == triplet(
        lambda limit: best_speedup(some, at_most=limit, instructions=True)
    )


def turn(number: int, speedup: float | None, instructions: bool | None = True) -> TurnOutcome:
    return TurnOutcome(number=number, correct=True, speedup=speedup, instructions=instructions)


def test_the_points_of_a_curve_by_hand():
    turns = (turn(1, 0.5), turn(2, 0.5), turn(3, 1.25), turn(4, None))
    curve = curve_of([TrajectoryOutcome(variant="a", planned=8, turns=turns)])
    assert curve.steps().points() == [(0.0, 3 / 8), (0.5, 1 / 8), (1.25, 0.0)]
    assert curve.steps(at_most=2).points() == [(0.0, 1.0), (0.5, 0.0)]
    assert curve.rates() == Triplet(first=1.0, fourth=1.0, eighth=0.5)


def test_the_band_points_of_two_variants_by_hand():
    curve = curve_of(
        [
            TrajectoryOutcome(variant="a", planned=2, turns=(turn(1, 0.5), turn(2, 1.0))),
            TrajectoryOutcome(variant="b", planned=2),
        ]
    )
    assert curve.band_points() == [
        (0.0, Band(mean=0.5, low=0.0, high=1.0)),
        (0.5, Band(mean=0.25, low=0.0, high=0.5)),
        (1.0, Band(mean=0.0, low=0.0, high=0.0)),
    ]


def test_evidence_of_instructions_is_unknown_only_where_no_correct_turn_has_any():
    def known(*turns: TurnOutcome) -> bool:
        one = TrajectoryOutcome(variant="a", planned=8, turns=turns)
        return curve_of([one]).knows_instructions()

    assert known()
    assert known(TurnOutcome(number=1, correct=False))
    assert not known(turn(1, 0.5, None))
    assert known(turn(1, 0.5, None), turn(2, 0.5, False))


def test_an_empty_curve_has_no_share_and_no_point():
    empty = Curve()
    assert empty.steps().points() == []
    assert empty.steps().fast_p(0) is None
    assert empty.band(0) is None


def test_a_failure_that_reports_a_speedup_never_counts_and_equal_is_not_faster():
    """Field case O-39: ten tasks, five of them correct."""
    correct = [turn(number, speedup) for number, speedup in enumerate((0.8, 1.0, 1.0, 1.2, 2.0), 1)]
    lying = TurnOutcome(number=6, correct=False, speedup=9.0)
    failed = [TurnOutcome(number=number, correct=False) for number in range(7, 11)]
    some = [TrajectoryOutcome(variant="a", planned=10, turns=(*correct, lying, *failed))]
    steps = curve_of(some).steps()
    for p, share in ((0, 0.5), (1.0, 0.2), (1.2, 0.1), (2.0, 0)):
        assert steps.fast_p(p) == fast_p(some, p) == share
    assert steps.best_speedup == 2.0
