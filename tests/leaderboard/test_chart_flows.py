"""Flows of trajectories, strips of samples, and points against effort and time."""

from datetime import date

from evaluator.metrics.states import TurnState
from leaderboard.charts.flows import CSS, TALL, flows_chart
from leaderboard.charts.scatter import Point, release_chart, scatter_chart
from leaderboard.charts.strips import spread, strips_chart

BUILD, WRONG, CORRECT = TurnState.BUILD, TurnState.WRONG, TurnState.CORRECT


def test_blocks_are_as_tall_as_they_have_trajectories():
    flows = flows_chart([[BUILD, CORRECT], [BUILD, WRONG], [CORRECT], [CORRECT, CORRECT]], 2)
    first = {one.state: one for one in flows.blocks if one.x == 96}
    assert {state: one.count for state, one in first.items()} == {CORRECT: 2, BUILD: 2}
    heights = {one.height for one in first.values()}
    assert heights == {f"{2 * (TALL - 4 * 3) / 4:.1f}"}
    assert flows.trajectory_count == 4


def test_the_tables_have_the_numbers_of_the_drawing():
    flows = flows_chart([[BUILD, CORRECT], [BUILD, WRONG], [CORRECT], [CORRECT, CORRECT]], 2)
    assert dict(flows.counts) == {
        CORRECT: (2, 2),
        WRONG: (0, 1),
        BUILD: (2, 0),
        TurnState.ENDED: (0, 1),
    }
    moves = {
        (one, other): n
        for one, row in flows.moves
        for other, n in zip(flows.states, row, strict=True)
    }
    assert {pair: n for pair, n in moves.items() if n} == {
        (BUILD, CORRECT): 1,
        (BUILD, WRONG): 1,
        (CORRECT, CORRECT): 1,
        (CORRECT, TurnState.ENDED): 1,
    }
    assert len(flows.ribbons) == 4
    assert flows.ribbons[0].title == "turn 1 to 2: 1 from correct to correct"


def test_a_ribbon_joins_the_block_it_leaves_and_the_one_it_reaches():
    flows = flows_chart([[BUILD, CORRECT]], 2)
    assert flows.ribbons[0].path.startswith("M118 26.0C")
    assert flows.ribbons[0].css == CSS[BUILD]


def test_nothing_flows_without_a_second_turn():
    assert flows_chart([], 8) is None
    assert flows_chart([[CORRECT]], 1) is None


def test_every_state_has_its_colour():
    assert set(CSS) == set(TurnState)
    assert len(set(CSS.values())) == len(TurnState)


def point(name: str, x: float, y: float) -> Point:
    return Point(name=name, mark=name, number=0, x=x, y=y)


def test_points_stand_where_their_numbers_say():
    chart = scatter_chart(
        [point("a", 1000, 0.5), point("b", 10_000, 0.25), point("c", 0, 0.9)],
        name="n",
        x_title="x",
        y_title="y",
        is_share=True,
    )
    a, b = sorted(chart.dots, key=lambda one: one.point.name)
    assert float(a.x) < float(b.x)
    assert float(a.y) < float(b.y)
    assert [one.text for one in chart.down][:2] == ["0%", "20%"]
    assert "10k" in [one.text for one in chart.across]


def test_one_point_alone_is_no_chart():
    more = {"name": "n", "x_title": "x", "y_title": "y", "is_share": False}
    assert scatter_chart([point("a", 1000, 0.5)], **more) is None
    assert release_chart([point("a", 738_000, 0.5)], [], name="n", y_title="y") is None


def test_releases_stand_between_years_with_their_uprights():
    days = [float(date(2025, 6, 1).toordinal()), float(date(2026, 6, 1).toordinal())]
    chart = release_chart(
        [point("a", days[0], 0.5), point("b", days[1], 0.6)],
        [("PTX for Hopper", date(2022, 12, 1))],
        name="n",
        y_title="y",
    )
    assert [one.text for one in chart.across] == ["2023", "2024", "2025", "2026"]
    at = {one.text: float(one.at) for one in chart.across}
    assert float(chart.uprights[0].x) < at["2023"]
    a = next(one for one in chart.dots if one.point.name == "a")
    assert at["2025"] < float(a.x) < at["2026"]


def test_the_spread_of_one_call_is_that_call():
    seen = spread([7])
    assert (seen.count, seen.minimum_ns, seen.median_ns, seen.maximum_ns) == (1, 7, 7, 7)


def test_strips_have_one_tick_a_call_and_leave_out_who_was_not_timed():
    chart = strips_chart([("A", 0, [1000, 2000, 3000]), ("B", 1, [])])
    assert [strip.label for strip in chart.strips] == ["A"]
    assert chart.strips[0].ticks.count("M") == 3
    assert chart.strips[0].spread.median_ns == 2000
    assert chart.unit == "\N{MICRO SIGN}s"
    assert strips_chart([("A", 0, [])]) is None


def test_ribbons_leave_and_arrive_below_one_another():
    """Two leave one block: the second begins where the first ends; so does it arrive."""
    flows = flows_chart([[BUILD, CORRECT], [BUILD, WRONG]], 2)
    first, second = (one.path for one in flows.ribbons)
    unit = (TALL - 4 * 2) / 2
    assert first.startswith("M118 26.0C")
    assert second.startswith(f"M118 {26 + unit:.1f}C")
    assert f" 814 {26 + unit + 4:.1f}v" in second
