"""The tables of the timing section, on evidence that was recorded on an H200."""

import json
from pathlib import Path

import pytest

from evaluator.records.evidence import TimingEvidence
from leaderboard.views.presenters.timing import timing_view

RECORDED = Path(__file__).parents[1] / "evidence" / "timing"


def recorded(name: str) -> TimingEvidence:
    value = json.loads((RECORDED / f"{name}.json").read_text())
    return TimingEvidence.model_validate(value["evidence"])


def test_it_compares_each_bracket_with_what_fits_the_report():
    view = timing_view(recorded("h200_gemm_wgmma"))
    deciding = [row for row in view.batches if row.decides]
    assert {row.batch.call_count for row in deciding} == {1, 32}
    assert all(0.5 < row.share <= 1 for row in deciding if row.batch.call_count == 32)
    burst = next(row for row in view.batches if row.batch.call_count == 32)
    assert burst.span_per_call_ns == pytest.approx(751_117, abs=1)


def test_it_shows_that_a_forged_time_does_not_fit():
    view = timing_view(recorded("h200_timer_forger"))
    assert max(row.share for row in view.batches if row.decides) > 1


def test_it_sums_up_each_trial_of_both():
    view = timing_view(recorded("h200_gemm_wgmma"))
    assert [(row.is_baseline, row.trial, row.count) for row in view.trials] == [
        (False, 1, 50),
        (False, 2, 50),
        (False, 3, 50),
        (True, 1, 50),
        (True, 2, 50),
        (True, 3, 50),
    ]
    row = view.trials[0]
    assert row.minimum_ns <= row.low_ns <= row.median_ns <= row.high_ns <= row.maximum_ns


def test_it_gives_the_range_of_clocks_and_why_the_device_slowed():
    readings = timing_view(recorded("h200_gemm_wgmma")).readings
    assert (readings.clock_low_hz, readings.clock_high_hz) == (1_950_000_000, 1_980_000_000)
    assert readings.throttle_reasons == ("power cap",)


def test_it_shows_nothing_to_compare_without_samples():
    evidence = recorded("h200_gemm_wgmma").model_copy(
        update={"samples": (), "baseline_samples": ()}
    )
    view = timing_view(evidence)
    assert (view.trials, view.batches) == ((), ())
