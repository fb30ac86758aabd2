"""What a metric is computed from: the turns of trajectories, whoever stored them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnOutcome:
    """A turn that counts; one that was lost to infrastructure is no outcome and stays out.

    number        1 to the trajectory's plan
    correct       every check of the function passed
    speedup       baseline latency / candidate latency; None where there is none or it is unknown
    instructions  the target's own instructions ran; None: unknown, which is never counted as a yes
    """

    number: int
    correct: bool
    speedup: float | None = None
    instructions: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryOutcome:
    """`planned` turns, of which `turns` were taken.

    A trajectory that ended early, by success or by its own fault, keeps its plan; one that
    infrastructure ended has planned what it could take.
    """

    variant: str
    planned: int
    turns: tuple[TurnOutcome, ...] = ()


def planned_turns(trajectories: Iterable[TrajectoryOutcome], at_most: int | None = None) -> int:
    """N: the denominator of every share; each trajectory counts at most `at_most` turns."""
    return sum(
        one.planned if at_most is None else min(one.planned, at_most) for one in trajectories
    )


def turns_within(
    trajectories: Sequence[TrajectoryOutcome], at_most: int | None = None
) -> list[TurnOutcome]:
    """Every outcome up to turn number `at_most`."""
    return [
        turn
        for one in trajectories
        for turn in one.turns
        if at_most is None or turn.number <= at_most
    ]
