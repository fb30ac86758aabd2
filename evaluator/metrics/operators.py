"""KernelGenBench's numbers over operators (arXiv 2607.27231): speedups, shares, matched subsets.

An operator is tested on several cases (shapes, types) and passes only if every case does. A mean
over passed operators alone flatters whoever solves the easy ones only, so shares are over all
operators, and two entrants are compared on those that both passed.

Cost  sorting: O(n log n) in the number of operators.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

SHARE_LIMITS = (0.8, 1.0, 1.5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Operator:
    """`speedups`: baseline latency / candidate latency by case; None for a case that failed."""

    name: str
    speedups: tuple[float | None, ...]

    @property
    def passed(self) -> bool:
        return bool(self.speedups) and None not in self.speedups

    @property
    def speedup(self) -> float | None:
        """First level: geometric mean over cases; None unless it passed."""
        known = [one for one in self.speedups if one is not None]
        return geometric_mean(known) if self.passed else None


def geometric_mean(values: Sequence[float]) -> float | None:
    """exp of the mean logarithm; None for no value. Raises ValueError for one that is not > 0."""
    if not values:
        return None
    if bad := [one for one in values if not one > 0 or math.isinf(one)]:
        raise ValueError(f"speedup {bad[0]!r}; a geometric mean takes finite numbers above 0")
    return math.exp(math.fsum(map(math.log, values)) / len(values))


def median(values: Sequence[float]) -> float | None:
    """The middle value, or the mean of the two middle ones; None for no value."""
    ordered = sorted(values)
    if not ordered:
        return None
    middle = len(ordered) // 2
    if len(ordered) % 2:
        return ordered[middle]
    return ordered[middle - 1] / 2 + ordered[middle] / 2


def interquartile_mean(values: Sequence[float]) -> float | None:
    """Mean of the middle half; None for no value.

    A quarter of the weight is taken off at each end; a value that the cut goes through keeps the
    part of it that is inside, so that the result does not jump with the number of values.
    """
    ordered = sorted(values)
    if not ordered:
        return None
    cut = len(ordered) / 4
    weights = [
        max(0.0, min(place + 1, len(ordered) - cut) - max(place, cut))
        for place in range(len(ordered))
    ]
    return math.fsum(w * v for w, v in zip(weights, ordered, strict=True)) / math.fsum(weights)


@dataclass(frozen=True, slots=True, kw_only=True)
class OperatorSummary:
    """`shares`: by limit, the share of all operators that passed with a speedup above it.

    geomean, median, interquartile_mean    over the `passed` operators; None where none passed
    """

    operators: int
    passed: int
    pass_rate: float | None
    geomean: float | None
    median: float | None
    interquartile_mean: float | None
    shares: Mapping[float, float | None]


def summarise(
    operators: Sequence[Operator], limits: Sequence[float] = SHARE_LIMITS
) -> OperatorSummary:
    """Second level: over operators, each counting once however many cases it has."""
    speedups = _speedups(operators)
    count = len(operators)
    return OperatorSummary(
        operators=count,
        passed=len(speedups),
        pass_rate=len(speedups) / count if count else None,
        geomean=geometric_mean(list(speedups.values())),
        median=median(list(speedups.values())),
        interquartile_mean=interquartile_mean(list(speedups.values())),
        shares={
            limit: sum(one > limit for one in speedups.values()) / count if count else None
            for limit in limits
        },
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Matched:
    """Two entrants on the operators that both passed.

    ratio    geometric mean of first / second, operator by operator; None where none is shared
    faster   operators on which the first is the faster of the two; ties are in neither count
    """

    shared: int
    only_first: int
    only_second: int
    first: float | None
    second: float | None
    ratio: float | None
    faster: int
    slower: int


def compare_matched(first: Sequence[Operator], second: Sequence[Operator]) -> Matched:
    """By name; raises ValueError where one list has an operator twice."""
    ours, theirs = _speedups(first), _speedups(second)
    shared = [name for name in ours if name in theirs]
    ratios = [ours[name] / theirs[name] for name in shared]
    return Matched(
        shared=len(shared),
        only_first=len(ours) - len(shared),
        only_second=len(theirs) - len(shared),
        first=geometric_mean([ours[name] for name in shared]),
        second=geometric_mean([theirs[name] for name in shared]),
        ratio=geometric_mean(ratios),
        faster=sum(one > 1 for one in ratios),
        slower=sum(one < 1 for one in ratios),
    )


def _speedups(operators: Iterable[Operator]) -> dict[str, float]:
    """Of those that passed, by name."""
    names: set[str] = set()
    found = {}
    for one in operators:
        if one.name in names:
            raise ValueError(f"operator {one.name!r} is there twice; each counts once")
        names.add(one.name)
        if (speedup := one.speedup) is not None:
            found[one.name] = speedup
    return found
