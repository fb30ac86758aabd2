"""What came of turns: a state each, counts by turn number, and transitions between turns.

PTXBench follows how failures move from compilation to run time and numerics as a model gets
feedback. Turns that were lost to infrastructure are left out before, so that a trajectory's states
are those of turns 1, 2, 3, ... that count.

Cost  one pass over all turns.
"""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

from evaluator.records.verdicts import Verdict


class TurnState(StrEnum):
    """From the best to the worst; ENDED: the trajectory took no such turn any more."""

    CORRECT = "correct"
    WRONG = "wrong result"
    RUNTIME = "runtime error"
    BUILD = "build error"
    NO_CODE = "no code"
    ENDED = "ended"


STATE_OF_VERDICT = {
    Verdict.PASSED: TurnState.CORRECT,
    Verdict.INCONCLUSIVE: TurnState.CORRECT,
    Verdict.TIMING_DISPUTED: TurnState.WRONG,
    Verdict.INCORRECT_SHAPE: TurnState.WRONG,
    Verdict.INCORRECT_DTYPE: TurnState.WRONG,
    Verdict.INCORRECT_NUMERICAL: TurnState.WRONG,
    Verdict.INPUT_MUTATED: TurnState.WRONG,
    Verdict.OUT_OF_BOUNDS_WRITE: TurnState.WRONG,
    Verdict.NO_KERNEL: TurnState.WRONG,
    Verdict.SANITIZER_ERROR: TurnState.RUNTIME,
    Verdict.RUNTIME_ERROR: TurnState.RUNTIME,
    Verdict.TIMEOUT: TurnState.RUNTIME,
    Verdict.OUT_OF_MEMORY: TurnState.RUNTIME,
    Verdict.COMPILE_ERROR: TurnState.BUILD,
    Verdict.ENTRY_POINT_MISSING: TurnState.BUILD,
    Verdict.BANNED_LIBRARY: TurnState.BUILD,
}
"""INCONCLUSIVE: the function is correct, only its time is not known."""


def turn_state(verdict: Verdict | None) -> TurnState:
    """None: the answer held no kernel."""
    return STATE_OF_VERDICT[verdict] if verdict else TurnState.NO_CODE


def counts_by_turn(
    trajectories: Sequence[Sequence[TurnState]], turns: int
) -> list[Counter[TurnState]]:
    """For turns 1 to `turns`: how many trajectories are in which state; each sums to all."""
    return [Counter(_at(one, place) for one in trajectories) for place in range(turns)]


def transitions(
    trajectories: Sequence[Sequence[TurnState]], turns: int
) -> list[Counter[tuple[TurnState, TurnState]]]:
    """Between turns 1 and 2, 2 and 3, ... up to `turns`: what an alluvial diagram draws.

    What leads into a state is what counts_by_turn counts there.
    """
    return [
        Counter((_at(one, place), _at(one, place + 1)) for one in trajectories)
        for place in range(turns - 1)
    ]


def _at(states: Sequence[TurnState], place: int) -> TurnState:
    return states[place] if place < len(states) else TurnState.ENDED
