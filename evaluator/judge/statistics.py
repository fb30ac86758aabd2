"""From samples to latency, noise and an interval. Pure.

latency   mean of the trial medians, as the paper reports it
spread    the larger of: interquartile range over median of all samples pooled; range of the
          trial medians over their mean
interval  95 %, bootstrap: in each of ROUNDS rounds the pairs of blocks of each trial are drawn
          anew with replacement and the speedup computed again; blocks, not calls, since
          neighbouring calls share clock and temperature; pairs, since a block of the candidate
          and the baseline's beside it share them too
noise     half the interval's width over the speedup: what a rank by speedup is uncertain by. A
          GPU at its power limit moves its clock by several per cent; candidate and baseline move
          together, so their ratio is known far better than either time
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median, quantiles

from evaluator.records.evidence import TimingSample

BLOCKS = 10
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

    @property
    def noise(self) -> float:
        """A fraction; 0.02 means that the speedup is known to plus or minus 2 %."""
        return (self.high - self.low) / 2 / self.ratio


def block_size(calls: int) -> int:
    """Calls that are taken together before it is the other's turn: BLOCKS blocks a trial."""
    return max(1, calls // BLOCKS)


def spans_by_trial(samples: Sequence[TimingSample]) -> Trials:
    numbers = sorted({sample.trial for sample in samples})
    return [[s.span_ns for s in samples if s.trial == number] for number in numbers]


def latency_ns(trials: Trials) -> float:
    return fmean(median(spans) for spans in trials)


def spread(trials: Trials) -> float:
    """Of one kernel's own spans, a fraction; 0.02 means 2 %."""
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
    ratios = sorted(_ratio_anew(candidate, baseline, block, source) for _ in range(ROUNDS))
    return Speedup(
        latency_ns=latency,
        baseline_latency_ns=base,
        ratio=base / latency,
        low=min(ratios[int(LOW * ROUNDS)], base / latency),
        high=max(ratios[int(HIGH * ROUNDS) - 1], base / latency),
    )


def _ratio_anew(candidate: Trials, baseline: Trials, block: int, source: random.Random) -> float:
    drawn: list[tuple[list[int], list[int]]] = []
    for spans, others in zip(candidate, baseline, strict=True):
        pairs = list(zip(_blocks(spans, block), _blocks(others, block), strict=True))
        chosen = source.choices(pairs, k=len(pairs))
        drawn.append(
            ([ns for pair in chosen for ns in pair[0]], [ns for pair in chosen for ns in pair[1]])
        )
    return latency_ns([pair[1] for pair in drawn]) / latency_ns([pair[0] for pair in drawn])


def _blocks(spans: list[int], block: int) -> list[list[int]]:
    return [spans[start : start + block] for start in range(0, len(spans), block)]
