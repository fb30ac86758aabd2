"""Timing evidence as tables: trials, batches against the judge's clock, and device readings."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles

from evaluator.judge.tolerances import Excess
from evaluator.records.evidence import BatchBracket, DeviceReading, TimingEvidence, TimingSample


@dataclass(frozen=True, slots=True, kw_only=True)
class TrialRow:
    """Spans of one trial's calls in nanoseconds; `who` is the kernel or the baseline."""

    who: str
    is_baseline: bool
    trial: int
    count: int
    minimum_ns: int
    low_ns: float
    median_ns: float
    high_ns: float
    maximum_ns: int
    busy_median_ns: float


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchRow:
    """`allowed_ns` is the longest wall time that fits the reported span; `share` is of that.

    The judge decides by the shortest bracket of each size, which `decides` marks.
    """

    batch: BatchBracket
    span_per_call_ns: float | None
    allowed_ns: float
    share: float
    decides: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Readings:
    """The range of what the device reported during the timed calls; None where it did not."""

    count: int
    clock_low_hz: int | None
    clock_high_hz: int | None
    temperature_low: float | None
    temperature_high: float | None
    power_low: float | None
    power_high: float | None
    throttle_reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimingView:
    trials: tuple[TrialRow, ...]
    batches: tuple[BatchRow, ...]
    readings: Readings


def timing_view(timing: TimingEvidence) -> TimingView:
    return TimingView(
        trials=(
            *_trial_rows(timing.samples, "this kernel", is_baseline=False),
            *_trial_rows(timing.baseline_samples, timing.baseline.name, is_baseline=True),
        ),
        batches=_batch_rows(timing),
        readings=_readings([sample.reading for sample in timing.samples if sample.reading]),
    )


def _trial_rows(
    samples: Sequence[TimingSample], who: str, *, is_baseline: bool
) -> tuple[TrialRow, ...]:
    trials = sorted({sample.trial for sample in samples})
    groups = [[sample for sample in samples if sample.trial == trial] for trial in trials]
    return tuple(_trial_row(group, who, is_baseline) for group in groups)


def _trial_row(group: Sequence[TimingSample], who: str, is_baseline: bool) -> TrialRow:
    spans = sorted(sample.span_ns for sample in group)
    low, middle, high = quantiles(spans, n=4) if len(spans) > 1 else (spans[0],) * 3
    return TrialRow(
        who=who,
        is_baseline=is_baseline,
        trial=group[0].trial + 1,
        count=len(spans),
        minimum_ns=spans[0],
        low_ns=low,
        median_ns=middle,
        high_ns=high,
        maximum_ns=spans[-1],
        busy_median_ns=median(sample.busy_ns for sample in group),
    )


def _batch_rows(timing: TimingEvidence) -> tuple[BatchRow, ...]:
    """None where no sample was taken, since there is no reported span to compare with."""
    if not timing.samples:
        return ()
    excess = Excess(
        share=timing.tolerated_batch_excess,
        per_call_ns=timing.tolerated_batch_excess_ns,
        per_bracket_ns=timing.tolerated_bracket_ns,
    )
    reported_ns = median(sample.span_ns for sample in timing.samples)
    shortest = {
        count: min(one.wall_ns for one in timing.batches if one.call_count == count)
        for count in {one.call_count for one in timing.batches}
    }
    return tuple(
        _batch_row(batch, excess.allowed_ns(reported_ns, batch.call_count), shortest)
        for batch in timing.batches
    )


def _batch_row(batch: BatchBracket, allowed_ns: float, shortest: dict[int, int]) -> BatchRow:
    span_ns, count = batch.warm_span_ns, batch.call_count
    return BatchRow(
        batch=batch,
        span_per_call_ns=span_ns / count if span_ns is not None else None,
        allowed_ns=allowed_ns,
        share=batch.wall_ns / allowed_ns,
        decides=batch.wall_ns == shortest[count],
    )


def _readings(readings: Sequence[DeviceReading]) -> Readings:
    clocks = [one.sm_clock_hz for one in readings if one.sm_clock_hz is not None]
    heats = [one.temperature_celsius for one in readings if one.temperature_celsius is not None]
    powers = [one.power_watts for one in readings if one.power_watts is not None]
    return Readings(
        count=len(readings),
        clock_low_hz=min(clocks, default=None),
        clock_high_hz=max(clocks, default=None),
        temperature_low=min(heats, default=None),
        temperature_high=max(heats, default=None),
        power_low=min(powers, default=None),
        power_high=max(powers, default=None),
        throttle_reasons=tuple(
            sorted({why.replace("_", " ") for one in readings for why in one.throttle_reasons})
        ),
    )
