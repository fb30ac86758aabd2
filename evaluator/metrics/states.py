"""What became of turns: a state each, counts by turn number, and transitions between turns.

PTXBench follows how failures move from compilation to run time and numerics as a model gets
feedback. A state is a word: a verdict, or why an answer held no kernel; excluded turns are left out
before, so that a trajectory's states are those of turns 1, 2, 3, ... that count.

Cost  one pass over all turns.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

NOT_TAKEN = "NOT_TAKEN"
"""The trajectory had ended: by success, its own fault or the budget."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrajectoryStates:
    """`states[i]` is the state of turn i + 1; fewer than `planned` where it ended early."""

    planned: int
    states: tuple[str, ...] = ()

    def at(self, number: int) -> str | None:
        """The state of this turn; NOT_TAKEN inside the plan, None beyond it."""
        if number <= len(self.states):
            return self.states[number - 1]
        return NOT_TAKEN if number <= self.planned else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Flow:
    """How many trajectories went from one state to another between turn `turn` and the next."""

    turn: int
    before: str
    after: str
    count: int


def states_by_turn(trajectories: Sequence[TrajectoryStates]) -> list[dict[str, int]]:
    """For turns 1, 2, ...: how many trajectories are in which state; each plan is counted whole."""
    return [dict(Counter(_column(trajectories, number))) for number in _numbers(trajectories)]


def state_shares(trajectories: Sequence[TrajectoryStates]) -> list[dict[str, float]]:
    """The same as fractions of the trajectories whose plan holds that turn."""
    return [
        {state: count / sum(counts.values()) for state, count in counts.items()}
        for counts in states_by_turn(trajectories)
    ]


def flows(trajectories: Sequence[TrajectoryStates]) -> list[Flow]:
    """Between each pair of turns, by turn and then by states: what a Sankey diagram draws.

    What flows into a turn's state is what states_by_turn counts there, where plans are equal.
    """
    found = []
    for number in _numbers(trajectories)[:-1]:
        pairs = Counter(
            (before, after)
            for one in trajectories
            if (before := one.at(number)) is not None and (after := one.at(number + 1)) is not None
        )
        found += [
            Flow(turn=number, before=before, after=after, count=count)
            for (before, after), count in sorted(pairs.items())
        ]
    return found


def transitions(trajectories: Sequence[TrajectoryStates]) -> dict[tuple[str, str], int]:
    """(before, after) over all pairs of consecutive turns that were both taken."""
    pairs = Counter(
        pair for one in trajectories for pair in zip(one.states, one.states[1:], strict=False)
    )
    return dict(sorted(pairs.items()))


def _numbers(trajectories: Sequence[TrajectoryStates]) -> list[int]:
    longest = max((max(one.planned, len(one.states)) for one in trajectories), default=0)
    return list(range(1, longest + 1))


def _column(trajectories: Sequence[TrajectoryStates], number: int) -> list[str]:
    return [state for one in trajectories if (state := one.at(number)) is not None]
