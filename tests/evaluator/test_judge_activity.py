"""Device records given to the calls' windows; the host's word is parsed, never trusted."""

import pytest

from evaluator.judge.activity import (
    Activity,
    MalformedActivity,
    Window,
    attribute,
    launch_list,
    parse_activities,
    parse_windows,
)

WINDOWS = [
    Window(label="a", start_ns=1_000, end_ns=2_000),
    Window(label="b", start_ns=103_000, end_ns=104_000),
]


def kernel(start_ns: int, end_ns: int, name: str = "k", kind: str = "kernel") -> Activity:
    return Activity(
        kind=kind, name=name, start_ns=start_ns, end_ns=end_ns, grid=(1, 1, 1), block=(32, 1, 1)
    )


def test_the_gap_between_two_kernels_counts_in_the_span_and_not_in_the_busy_time():
    found = attribute(WINDOWS, [kernel(1_100, 1_200), kernel(1_700, 1_900)])
    assert found.seen["a"].span_ns == 800
    assert found.seen["a"].busy_ns == 300
    assert found.seen["b"].activities == ()


def test_copies_and_memsets_count_like_kernels():
    copy = kernel(103_500, 103_900, "memcpy", "memcpy")
    found = attribute(WINDOWS, [kernel(103_100, 103_200), copy])
    assert found.seen["b"].span_ns == 800
    assert len(found.seen["b"].activities) == 2


@pytest.mark.parametrize(
    "stray", [kernel(50_000, 50_100), kernel(1_900, 22_001), kernel(82_999, 103_100)]
)
def test_work_outside_every_window_or_across_its_end_is_a_stray(stray):
    found = attribute(WINDOWS, [stray])
    assert found.stray_count == 1
    assert found.seen["a"].activities == ()


@pytest.mark.parametrize(
    ("near", "label"),
    [
        (kernel(1_900, 22_000), "a"),
        (kernel(2_100, 2_200), "a"),
        (kernel(83_000, 103_100), "b"),
        (kernel(102_900, 103_900), "b"),
    ],
)
def test_a_record_as_far_out_as_the_clocks_may_be_apart_belongs_to_its_call_whole(near, label):
    found = attribute(WINDOWS, [near])
    assert found.stray_count == 0
    assert found.seen[label].span_ns == near.end_ns - near.start_ns


def test_without_windows_every_record_is_a_stray():
    assert attribute([], [kernel(1, 2)]).stray_count == 1


def test_records_without_times_are_counted_and_belong_to_no_call():
    found = attribute(WINDOWS, [kernel(0, 0), kernel(1_100, 1_200)])
    assert found.unstamped_count == 1
    assert found.stray_count == 0
    assert len(found.seen["a"].activities) == 1


def test_equal_launches_are_counted_together_whatever_their_order():
    launches = [kernel(1, 2, "x"), kernel(3, 4, "y"), kernel(5, 6, "x")]
    listed = launch_list(launches)
    assert [(launch.name, launch.count) for launch in listed] == [("x", 2), ("y", 1)]
    assert listed == launch_list(launches[::-1])


@pytest.mark.parametrize(
    "record",
    [
        "kernel",
        {"start": -1, "end": 5},
        {"start": True, "end": 5},
        {"start": 1, "end": 1 << 70},
        {"start": 1.5, "end": 2},
        {"start": 1},
        {"start": 1, "end": 2, "grid": [1, 2]},
    ],
)
def test_a_record_that_no_host_of_ours_sends_is_refused(record):
    with pytest.raises(MalformedActivity):
        parse_activities([record])


def test_windows_are_parsed_and_something_else_refused():
    assert parse_windows([{"label": "a", "start": 1, "end": 2}])[0].end_ns == 2
    with pytest.raises(MalformedActivity):
        parse_windows({"label": "a"})
