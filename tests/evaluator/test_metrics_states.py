"""States by turn and their transitions: by hand, and that nothing is lost on the way."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evaluator.metrics.states import TurnState, counts_by_turn, transitions, turn_state
from evaluator.records.verdicts import Verdict

BUILD, CORRECT, ENDED = TurnState.BUILD, TurnState.CORRECT, TurnState.ENDED
SOME = [[BUILD, BUILD, CORRECT], [BUILD, CORRECT]]
TRAJECTORIES = st.lists(st.lists(st.sampled_from(TurnState), max_size=6), max_size=6)


@pytest.mark.parametrize("verdict", Verdict)
def test_every_verdict_is_a_state(verdict):
    assert turn_state(verdict) in set(TurnState) - {ENDED, TurnState.NO_CODE}


def test_a_state_tells_who_erred():
    assert turn_state(None) is TurnState.NO_CODE
    assert turn_state(Verdict.INCONCLUSIVE) is CORRECT
    assert turn_state(Verdict.BANNED_LIBRARY) is BUILD
    assert turn_state(Verdict.TIMEOUT) is TurnState.RUNTIME
    assert turn_state(Verdict.INCORRECT_NUMERICAL) is TurnState.WRONG


def test_counts_by_turn_hold_those_that_ended():
    assert counts_by_turn(SOME, 3) == [
        Counter({BUILD: 2}),
        Counter({BUILD: 1, CORRECT: 1}),
        Counter({CORRECT: 1, ENDED: 1}),
    ]


def test_transitions_lead_from_each_turn_to_the_next():
    assert transitions(SOME, 3) == [
        Counter({(BUILD, BUILD): 1, (BUILD, CORRECT): 1}),
        Counter({(BUILD, CORRECT): 1, (CORRECT, ENDED): 1}),
    ]
    assert transitions(SOME, 1) == []


@given(TRAJECTORIES, st.integers(2, 8))
def test_what_leads_into_a_state_is_what_is_there(some, turns):
    counts, moves = counts_by_turn(some, turns), transitions(some, turns)
    for place, found in enumerate(moves):
        left, arrived = Counter(), Counter()
        for (before, after), count in found.items():
            left[before] += count
            arrived[after] += count
        assert (left, arrived) == (counts[place], counts[place + 1])
    assert all(sum(column.values()) == len(some) for column in counts)
