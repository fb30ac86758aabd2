"""States by turn and their transitions: by hand, and that nothing is lost on the way."""

from hypothesis import given
from hypothesis import strategies as st

from evaluator.metrics.states import (
    NOT_TAKEN,
    Flow,
    TrajectoryStates,
    flows,
    state_shares,
    states_by_turn,
    transitions,
)

SOME = (
    TrajectoryStates(planned=3, states=("COMPILE_ERROR", "COMPILE_ERROR", "PASSED")),
    TrajectoryStates(planned=3, states=("COMPILE_ERROR", "PASSED")),
)


@st.composite
def trajectories(draw: st.DrawFn) -> list[TrajectoryStates]:
    planned = draw(st.integers(1, 6))
    words = st.lists(st.sampled_from(["PASSED", "TIMEOUT", "NO_CODE"]), max_size=planned)
    found = draw(st.lists(words, min_size=1, max_size=6))
    return [TrajectoryStates(planned=planned, states=tuple(one)) for one in found]


def test_states_by_turn_count_what_was_not_taken():
    assert states_by_turn(SOME) == [
        {"COMPILE_ERROR": 2},
        {"COMPILE_ERROR": 1, "PASSED": 1},
        {"PASSED": 1, NOT_TAKEN: 1},
    ]
    assert state_shares(SOME)[2] == {"PASSED": 0.5, NOT_TAKEN: 0.5}


def test_flows_lead_from_each_turn_to_the_next():
    assert flows(SOME) == [
        Flow(turn=1, before="COMPILE_ERROR", after="COMPILE_ERROR", count=1),
        Flow(turn=1, before="COMPILE_ERROR", after="PASSED", count=1),
        Flow(turn=2, before="COMPILE_ERROR", after="PASSED", count=1),
        Flow(turn=2, before="PASSED", after=NOT_TAKEN, count=1),
    ]


def test_transitions_are_of_turns_that_were_both_taken():
    assert transitions(SOME) == {
        ("COMPILE_ERROR", "COMPILE_ERROR"): 1,
        ("COMPILE_ERROR", "PASSED"): 2,
    }


def test_a_plan_that_infrastructure_cut_is_not_counted_beyond_it():
    some = (TrajectoryStates(planned=2, states=("PASSED",)), TrajectoryStates(planned=0))
    assert states_by_turn(some) == [{"PASSED": 1}, {NOT_TAKEN: 1}]
    assert states_by_turn([]) == []
    assert flows([]) == []


@given(trajectories())
def test_what_flows_into_a_turn_is_what_is_there(some):
    counts = states_by_turn(some)
    for flow_turn, column in enumerate(counts[1:], 1):
        arrived: dict[str, int] = {}
        for flow in flows(some):
            if flow.turn == flow_turn:
                arrived[flow.after] = arrived.get(flow.after, 0) + flow.count
        assert arrived == column
    assert all(sum(column.values()) == len(some) for column in counts)


@given(trajectories())
def test_each_taken_turn_but_the_last_makes_one_transition(some):
    expected = sum(max(0, len(one.states) - 1) for one in some)
    assert sum(transitions(some).values()) == expected
