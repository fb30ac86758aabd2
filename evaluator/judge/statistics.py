"""From samples to latency, noise and an interval. Pure.

latency   mean of the trial medians, as the paper reports it
noise     the larger of: interquartile range over median of all samples pooled; spread of the
          trial medians over their mean
interval  95 %, bootstrap: in each of ROUNDS rounds the blocks of each trial are drawn anew with
          replacement, for candidate and baseline apart, and the speedup computed again; blocks,
          not calls, since neighbouring calls share clock and temperature
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, quantiles

from evaluator.records.evidence import TimingSample

BLOCKS = 5
ROUNDS = 1000
BOOTSTRAP_SEED = 20
LOW, HIGH = 0.025, 0.975

Trials = list[list[int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Speedup:
    latency_ns: float
    baseline_latency_ns: float
    ratio: float
    low: float
    high: float


def block_size(calls: int) -> int:
    """Calls that are taken together before it is the other's turn: BLOCKS blocks a trial."""
    return max(1, calls // BLOCKS)


def spans_by_trial(samples: Sequence[TimingSample]) -> Trials:
    numbers = sorted({sample.trial for sample in samples})
    return [[s.span_ns for s in samples if s.trial == number] for number in numbers]


def latency_ns(trials: Trials) -> float:
    return fmean(median(spans) for spans in trials)


def noise(trials: Trials) -> float:
    """A fraction; 0.02 means 2 %."""
    pooled = [span for spans in trials for span in spans]
    middle = median(pooled)
    if middle <= 0 or len(pooled) < 2:
        return 1.0
    first, _, third = quantiles(pooled, n=4)
    medians = [median(spans) for spans in trials]
    return max((third - first) / middle, (max(medians) - min(medians)) / fmean(medians))


def speedup(candidate: Trials, baseline: Trials, block: int) -> Speedup:
    """`block` calls were taken together, candidate and baseline in turn."""
    latency, base = latency_ns(candidate), latency_ns(baseline)
    source = random.Random(BOOTSTRAP_SEED)  # noqa: S311  the interval must be reproducible
    ratios = sorted(
        latency_ns(_resampled(baseline, block, source))
        / latency_ns(_resampled(candidate, block, source))
        for _ in range(ROUNDS)
    )
    return Speedup(
        latency_ns=latency,
        baseline_latency_ns=base,
        ratio=base / latency,
        low=min(ratios[int(LOW * ROUNDS)], base / latency),
        high=max(ratios[int(HIGH * ROUNDS) - 1], base / latency),
    )


def _resampled(trials: Trials, block: int, source: random.Random) -> Trials:
    return [_drawn(spans, block, source) for spans in trials]


def _drawn(spans: list[int], block: int, source: random.Random) -> list[int]:
    blocks = [spans[start : start + block] for start in range(0, len(spans), block)]
    return [span for chosen in source.choices(blocks, k=len(blocks)) for span in chosen]
