"""KernelGenBench's numbers: by hand, and what must hold for any numbers."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.metrics.operators import (
    Matched,
    Operator,
    compare_matched,
    geometric_mean,
    interquartile_mean,
    median,
    summarise,
)
from evaluator.metrics.success import PerSuccess, mean_pass_at_k, pass_at_k, per_success

VALUES = st.lists(st.floats(0.01, 100), min_size=1, max_size=40)


def operators(**speedups: tuple[float | None, ...]) -> list[Operator]:
    return [Operator(name=name, speedups=found) for name, found in speedups.items()]


def test_each_operator_counts_once_however_many_cases_it_has():
    some = operators(mm=(4.0,) * 9, softmax=(1.0,))
    assert summarise(some).geomean == pytest.approx(2.0)


def test_an_operator_passes_only_with_all_its_cases():
    some = operators(mm=(2.0, None), softmax=(0.5, 2.0), empty=())
    seen = summarise(some)
    assert (seen.operators, seen.passed, seen.pass_rate) == (3, 1, 1 / 3)
    assert seen.geomean == pytest.approx(1.0)


def test_shares_are_over_all_operators_and_strict():
    some = operators(a=(0.8,), b=(0.81,), c=(1.0,), d=(1.6,), failed=(None,))
    assert summarise(some).shares == {0.8: 3 / 5, 1.0: 1 / 5, 1.5: 1 / 5}


def test_nothing_passed_has_no_mean_and_a_pass_rate_of_zero():
    seen = summarise(operators(a=(None,)))
    assert (seen.geomean, seen.median, seen.interquartile_mean) == (None, None, None)
    assert seen.pass_rate == 0
    assert summarise([]).pass_rate is None
    assert summarise([]).shares == {0.8: None, 1.0: None, 1.5: None}


def test_two_entrants_are_compared_where_both_passed():
    first = operators(a=(1.0,), b=(4.0,), hard=(None,), ours=(9.0,))
    second = operators(a=(2.0,), b=(1.0,), hard=(1.0,), theirs=(3.0,))
    assert compare_matched(first, second) == Matched(
        shared=2,
        only_first=1,
        only_second=2,
        first=pytest.approx(2.0),
        second=pytest.approx(math.sqrt(2)),
        ratio=pytest.approx(math.sqrt(2)),
        faster=1,
        slower=1,
    )


def test_nothing_in_common_has_no_ratio():
    seen = compare_matched(operators(a=(1.0,)), operators(b=(1.0,)))
    assert (seen.shared, seen.ratio, seen.first) == (0, None, None)


def test_an_operator_that_is_there_twice_is_refused():
    with pytest.raises(ValueError, match="operator 'a' is there twice"):
        summarise([*operators(a=(1.0,)), *operators(a=(2.0,))])


@pytest.mark.parametrize("bad", [0.0, -1.0, math.nan, math.inf])
def test_a_geometric_mean_of_what_is_no_speedup_is_refused(bad):
    with pytest.raises(ValueError, match="finite numbers above 0"):
        geometric_mean([1.0, bad])


def test_the_middle_half_by_hand():
    assert interquartile_mean([1, 2, 3, 100]) == 2.5
    assert interquartile_mean([7]) == 7
    # five values: 1.25 of weight off at each end leaves 0.75, 1, 0.75 of the middle three
    assert interquartile_mean([0, 2, 4, 8, 99]) == pytest.approx((0.75 * 2 + 4 + 0.75 * 8) / 2.5)
    assert (median([3, 1, 2]), median([4, 1]), median([])) == (2, 2.5, None)


@given(VALUES)
def test_means_lie_between_the_least_and_the_greatest(values):
    for mean in (geometric_mean, median, interquartile_mean):
        assert min(values) * 0.999999 <= mean(values) <= max(values) * 1.000001


@given(VALUES, st.floats(0.01, 100))
def test_the_geometric_mean_scales(values, factor):
    scaled = geometric_mean([factor * one for one in values])
    assert scaled == pytest.approx(factor * geometric_mean(values))


@given(VALUES)
def test_the_ratio_of_matched_operators_turns_over_when_they_change_places(values):
    first = [Operator(name=str(n), speedups=(one,)) for n, one in enumerate(values)]
    second = [Operator(name=str(n), speedups=(1.5,)) for n in range(len(values))]
    there, back = compare_matched(first, second), compare_matched(second, first)
    assert there.ratio == pytest.approx(1 / back.ratio)
    assert (there.faster, there.slower) == (back.slower, back.faster)
    assert there.ratio == pytest.approx(there.first / there.second)


def test_pass_at_k_by_hand():
    assert pass_at_k(samples=4, correct=1, k=1) == 0.25
    assert pass_at_k(samples=4, correct=2, k=2) == pytest.approx(1 - 1 / 6)
    assert pass_at_k(samples=4, correct=3, k=2) == 1
    assert pass_at_k(samples=4, correct=0, k=4) == 0
    assert pass_at_k(samples=3, correct=3, k=4) is None


@given(st.integers(1, 30), st.data())
def test_pass_at_k_is_the_share_of_draws_with_a_success(samples, data):
    correct, k = data.draw(st.integers(0, samples)), data.draw(st.integers(1, samples))
    all_fail = 1.0
    for place in range(k):
        all_fail *= max(0, samples - correct - place) / (samples - place)
    assert pass_at_k(samples=samples, correct=correct, k=k) == pytest.approx(1 - all_fail)


@pytest.mark.parametrize(("samples", "correct", "k"), [(3, 4, 1), (3, -1, 1), (3, 1, 0)])
def test_counts_that_cannot_be_are_refused(samples, correct, k):
    with pytest.raises(ValueError, match=f"{correct} correct of {samples} samples at k = {k}"):
        pass_at_k(samples=samples, correct=correct, k=k)


def test_the_mean_over_problems_needs_enough_samples_of_each():
    assert mean_pass_at_k([(4, 1), (4, 3)], 1) == 0.5
    assert mean_pass_at_k([(4, 1), (1, 1)], 2) is None
    assert mean_pass_at_k([], 1) is None


def test_what_a_success_costs_counts_the_failures_too():
    assert per_success(successes=4, tokens=1000, cost_usd=2.0) == PerSuccess(
        successes=4, tokens=250.0, cost_usd=0.5
    )
    assert per_success(successes=0, tokens=1000, cost_usd=2.0).tokens is None
    assert per_success(successes=4, tokens=None, cost_usd=2.0).tokens is None
