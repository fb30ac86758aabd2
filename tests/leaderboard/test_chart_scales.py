"""Places on drawings: scales, ticks, and paths of steps."""

import pytest

from leaderboard.charts.scales import Scale, padded, round_values, step_path


def test_a_scale_goes_from_end_to_end_and_cuts_what_lies_outside():
    x = Scale(low=0.0, high=2.0, start=100.0, end=200.0)
    assert [x(value) for value in (-1.0, 0.0, 0.5, 2.0, 9.0)] == [100, 100, 125, 200, 200]


def test_a_logarithmic_scale_gives_each_decade_the_same_length():
    x = Scale(low=1.0, high=100.0, start=0.0, end=200.0, log=True)
    assert [round(x(value)) for value in (1.0, 10.0, 100.0)] == [0, 100, 200]
    assert [one.text for one in x.ticks()] == ["1", "2", "5", "10", "20", "50", "100"]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0.0, 1.2, (0.0, 0.5, 1.0)),
        (0.0, 0.33, (0.0, 0.1, 0.2, 0.3)),
        (3.0, 3.9, (3.0, 3.2, 3.4, 3.6, 3.8)),
    ],
)
def test_ticks_are_round(low, high, expected):
    assert round_values(low, high) == expected


def test_a_range_of_one_value_gets_air_and_never_goes_below_zero():
    assert padded(0.0, 0.0) == (0.0, 0.5)
    assert padded(20.0, 20.0) == (19.0, 21.0)


def test_steps_are_drawn_with_horizontal_and_vertical_lines_only():
    path = step_path([(0, 100), (10.4, 100), (10.4, 60), (20.6, 60)])
    assert path == "M0 100h10v-40h11"


def test_rounding_does_not_add_up():
    points = [(0.4 * number, 0.4 * number) for number in range(101)]
    moves = step_path(points).removeprefix("M0 0")
    assert sum(int(one[1:]) for one in _parts(moves) if one[0] == "h") == 40
    assert sum(int(one[1:]) for one in _parts(moves) if one[0] == "v") == 40


def _parts(path: str) -> list[str]:
    return path.replace("h", " h").replace("v", " v").split()
