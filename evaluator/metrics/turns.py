"""The PTXBench paper's metrics over turns: correctness rate, best speedup, Fast_p.

N is the number of planned turns (outcomes.planned_turns), so a trajectory that gave up early or
met its target early is not flattered by the turns that it did not take. Unknown evidence of target
instructions never enters a numerator.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from evaluator.metrics.outcomes import (
    TrajectoryOutcome,
    TurnOutcome,
    planned_turns,
    turns_within,
)

TURN_LIMITS = (1, 4, 8)
THRESHOLDS = (0.0, 0.5, 0.75, 0.9, 1.0)


def correctness_rate(
    trajectories: Sequence[TrajectoryOutcome],
    *,
    at_most: int | None = None,
    instructions: bool = False,
) -> float | None:
    """Share of planned turns that are correct; None where nothing was planned.

    With `instructions` only turns count that ran the target's own instructions.
    """
    return _share(trajectories, at_most, lambda turn: _counts(turn, instructions))


def fast_p(
    trajectories: Sequence[TrajectoryOutcome],
    p: float,
    *,
    at_most: int | None = None,
    instructions: bool = False,
) -> float | None:
    """Share of planned turns that are correct and have a speedup above `p`, strictly."""
    return _share(
        trajectories,
        at_most,
        lambda turn: _counts(turn, instructions) and turn.speedup is not None and turn.speedup > p,
    )


def best_speedup(
    trajectories: Sequence[TrajectoryOutcome],
    *,
    at_most: int | None = None,
    instructions: bool = False,
) -> float | None:
    """The largest speedup of a correct turn; None where no correct turn has one."""
    return max(
        (
            turn.speedup
            for turn in turns_within(trajectories, at_most)
            if _counts(turn, instructions) and turn.speedup is not None
        ),
        default=None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Triplet:
    """One metric at <= 1, <= 4 and <= 8 turns, as the paper's tables give it."""

    first: float | None
    fourth: float | None
    eighth: float | None


def triplet(measure: Callable[[int], float | None]) -> Triplet:
    """`measure(at_most)` at the three turn limits of the paper."""
    first, fourth, eighth = (measure(limit) for limit in TURN_LIMITS)
    return Triplet(first=first, fourth=fourth, eighth=eighth)


@dataclass(frozen=True, slots=True, kw_only=True)
class Band:
    """A metric over prompt variants: the mean, and the range from the worst to the best."""

    mean: float
    low: float
    high: float


def over_variants(
    trajectories: Sequence[TrajectoryOutcome],
    measure: Callable[[Sequence[TrajectoryOutcome]], float | None],
) -> Band | None:
    """`measure` for each variant alone; None where no variant has a value."""
    variants = dict.fromkeys(one.variant for one in trajectories)
    values = [
        value
        for variant in variants
        if (value := measure([one for one in trajectories if one.variant == variant])) is not None
    ]
    if not values:
        return None
    return Band(mean=sum(values) / len(values), low=min(values), high=max(values))


def _counts(turn: TurnOutcome, instructions: bool) -> bool:
    return turn.correct and (turn.instructions is True or not instructions)


def _share(
    trajectories: Sequence[TrajectoryOutcome],
    at_most: int | None,
    counts: Callable[[TurnOutcome], bool],
) -> float | None:
    planned = planned_turns(trajectories, at_most)
    if planned == 0:
        return None
    return sum(map(counts, turns_within(trajectories, at_most))) / planned
