"""Latency, noise and the interval of a speedup."""

import pytest

from evaluator.judge.statistics import block_size, latency_ns, speedup, spread
from evaluator.judge.tolerances import Excess, speed_of_light_ns
from evaluator.problems import find_problem
from evaluator.targets import find_target

STEADY = [[100, 100, 100, 100]] * 3


def test_latency_is_the_mean_of_the_trial_medians():
    assert latency_ns([[1, 2, 90], [4, 4, 4], [6, 6, 7]]) == 4.0


def test_the_spread_is_the_quartile_range_over_the_median():
    assert spread([[100, 104, 108, 112] * 5]) == pytest.approx(12 / 106, rel=0.2)
    assert spread(STEADY) == 0.0


def test_one_hiccup_is_no_spread_but_drifting_trials_are():
    assert spread([[100] * 19 + [900]] * 3) == 0.0
    assert spread([[100] * 20] * 4 + [[110] * 20]) == pytest.approx(10 / 102)


def test_a_clock_that_slows_both_alike_adds_no_noise_to_their_ratio():
    clock = [1.0, 1.02, 1.05, 1.08, 1.1]
    candidate = [[round(1_000 * slow) for slow in clock for _ in range(5)]] * 3
    baseline = [[round(1_200 * slow) for slow in clock for _ in range(5)]] * 3
    found = speedup(candidate, baseline, block=5)
    assert spread(candidate) > 0.05
    assert found.ratio == pytest.approx(1.2)
    assert found.noise < 0.001


def test_calls_that_were_taken_together_are_drawn_together():
    """Ten blocks a trial, as the judge takes them; single calls would claim to know more."""
    assert [block_size(calls) for calls in (50, 20, 10, 6, 1)] == [5, 2, 1, 1, 1]
    drifting = [[100 + 2 * (call // 5) for call in range(50)]] * 3
    by_blocks = speedup(drifting, [[105] * 50] * 3, block=block_size(50))
    by_calls = speedup(drifting, [[105] * 50] * 3, block=1)
    assert by_blocks.noise > 1.5 * by_calls.noise


def test_noise_is_half_the_interval_over_the_ratio():
    candidate = [[100] * 10 + [110] * 10 + [105] * 10] * 3
    found = speedup(candidate, [[105] * 30] * 3, block=10)
    assert found.noise == pytest.approx((found.high - found.low) / 2 / found.ratio)
    assert found.noise > 0.01


def test_the_interval_holds_the_ratio_and_is_a_point_for_constant_spans():
    found = speedup(STEADY, [[150] * 4] * 3, block=2)
    assert (found.ratio, found.low, found.high) == (1.5, 1.5, 1.5)


def test_the_interval_is_wider_for_spread_blocks_and_the_same_every_time():
    candidate = [[100] * 10 + [110] * 10 + [105] * 10] * 3
    first = speedup(candidate, [[105] * 30] * 3, block=10)
    assert first.low < first.ratio < first.high
    assert first == speedup(candidate, [[105] * 30] * 3, block=10)


def test_a_bracket_may_exceed_the_span_by_share_per_call_and_per_bracket():
    excess = Excess(share=0.1, per_call_ns=10.0, per_bracket_ns=1_000.0)
    assert excess.allowed_ns(100.0, 1) == pytest.approx(1_120.0)
    assert excess.allowed_ns(100.0, 8) == pytest.approx(1_960.0)


def test_the_bound_of_the_full_gemm_is_its_arithmetic_and_unknown_on_the_cpu():
    problem = find_problem("gemm_n7168_k5120")
    bound_ns = speed_of_light_ns(problem.flop_count, problem.byte_count, find_target("h200"))
    assert bound_ns == pytest.approx(2 * 8192 * 7168 * 5120 / 989e12 * 1e9)
    assert speed_of_light_ns(problem.flop_count, problem.byte_count, find_target("host")) is None
