"""Timing evidence as tables: trials, batches against the judge's clock, and device readings."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median, quantiles

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
    """`excess` is the wall time per call over the reported span, as a fraction of the span."""

    batch: BatchBracket
    excess: float | None


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
        batches=tuple(_batch_row(batch) for batch in timing.batches),
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


def _batch_row(batch: BatchBracket) -> BatchRow:
    span = batch.warm_span_ns
    return BatchRow(batch=batch, excess=batch.wall_per_call_ns / span - 1 if span else None)


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
        throttle_reasons=tuple(sorted({why for one in readings for why in one.throttle_reasons})),
    )
