"""Fast_p drawings: steps, bands, the noise zone, and where the axis ends."""

import pytest

from evaluator.metrics.curves import CorrectTurn, VariantCurve
from evaluator.metrics.curves import Curve as Turns
from leaderboard.charts.fast_p import Curve, Step, axis_end, fast_p_chart, series_css
from leaderboard.views.presenters.fast_p import Shown, panel


def curve(*steps: tuple[float, float, float, float], best: float | None = None) -> Curve:
    return Curve(
        name="m",
        number=0,
        steps=tuple(Step(p=p, mean=mean, low=low, high=high) for p, mean, low, high in steps),
        best=best,
    )


def drawn(one: Curve, **more):
    return fast_p_chart([one], **{"end": 1.2, "pinned": 0.9, "noise": 0.02, **more})


def test_the_line_holds_each_value_until_the_next_speedup():
    chart = drawn(curve((0, 0.5, 0.5, 0.5), (0.6, 0, 0, 0), best=0.6))
    """x: 44 at 0 to 508 at 1.2, so 0.6 is 276; y: 262 at 0, 10 at 1, so 0.5 is 136."""
    assert chart.curves[0].line == "M44 136h232v126h232"
    assert chart.curves[0].best_at == "276.0"


def test_the_band_goes_along_the_best_variant_and_back_along_the_worst():
    chart = drawn(curve((0, 0.5, 0.25, 0.75), (0.6, 0, 0, 0), best=0.6))
    assert chart.curves[0].band == "M44 73h232v189h232h-232v-63h-232z"


def test_variants_that_never_differ_have_no_band():
    assert drawn(curve((0, 0.5, 0.5, 0.5), best=0.6)).curves[0].band == ""


def test_only_the_first_curves_have_bands():
    one = curve((0, 0.5, 0.25, 0.75), best=0.6)
    chart = fast_p_chart([one, one], end=1.2, pinned=0.9, noise=0.02, bands=1)
    assert [bool(found.band) for found in chart.curves] == [True, False]


def test_the_noise_zone_lies_around_one():
    x, width = drawn(curve()).noise
    assert (x, width) == (f"{44 + 464 * 0.98 / 1.2:.1f}", f"{464 * 0.04 / 1.2:.1f}")


def test_a_curve_without_steps_draws_nothing():
    found = drawn(curve()).curves[0]
    assert (found.line, found.band, found.best_at) == ("", "", "")


@pytest.mark.parametrize(
    ("bests", "end"),
    [
        ([], 1.2),
        ([None], 1.2),
        ([0.9, 0.1], 1.2),
        ([1.4], 1.4 * 1.08),
        ([0.3], 0.3 * 1.12),
        ([0.001], 0.05),
        ([50.0], 3.0),
    ],
)
def test_the_axis_ends_beyond_the_best_and_shows_one_wherever_it_is_near(bests, end):
    assert axis_end(bests) == pytest.approx(end)


def test_what_lies_beyond_the_axis_is_not_drawn():
    chart = drawn(curve((0, 0.5, 0.5, 0.5), best=0.3), end=0.4)
    assert (chart.one, chart.noise, chart.pinned) == (None, None, None)


def test_two_of_eleven_series_of_one_colour_differ_in_their_dash():
    names = [series_css(number) for number in range(24)]
    assert len(set(names)) == 24
    assert names[0] == "c1 dash0"
    assert names[8] == "c1 dash2"


def turns(*found: tuple[int, float, bool | None], variant: str = "a", plans=((8, 2),)):
    return VariantCurve(
        variant=variant, plans=plans, turns=tuple(CorrectTurn(*one) for one in found)
    )


def shown(*variants: VariantCurve, knows: bool = True, key: str = "k") -> Shown:
    return Shown(
        key=key,
        name="m",
        note="",
        number=0,
        turns=Turns(variants=variants),
        knows_instructions=knows,
    )


def panel_of(*models: Shown, p: float = 0.9, at_most: int = 8, has_families: bool = True):
    return panel(
        "gemm", "GEMM", models, p=p, at_most=at_most, noise=0.02, has_families=has_families
    )


def test_the_table_beside_has_mean_and_range_over_variants():
    """16 turns a variant are planned; 2 and 1 are faster than 0.9, which 0.9 itself is not."""
    one = shown(
        turns((1, 0.95, True), (2, 0.9, True), (3, 1.0, False)), turns((1, 0.91, True), variant="b")
    )
    row = panel_of(one).rows[0]
    band = row.any_instructions.band
    assert (band.mean, band.low, band.high) == (1.5 / 16, 1 / 16, 2 / 16)
    assert row.any_instructions.best == 1.0
    assert row.with_instructions.band.high == 1 / 16
    assert row.with_instructions.best == 0.95


def test_fewer_turns_count_fewer_planned_ones():
    one = shown(turns((1, 0.95, True), (4, 1.1, True)))
    assert panel_of(one, at_most=1).rows[0].any_instructions.band.mean == 1 / 2
    assert panel_of(one, at_most=4).rows[0].any_instructions.band.mean == 2 / 8


def test_unknown_instructions_draw_no_second_chart_and_no_number():
    found = panel_of(shown(turns((1, 0.95, None)), knows=False))
    assert found.target_chart is None
    assert found.rows[0].with_instructions is None
    assert [name for name, _ in found.charts] == ["any instructions"]


def test_both_charts_share_one_axis():
    found = panel_of(shown(turns((1, 0.4, True), (2, 1.5, False))))
    (_, target), (_, both) = found.charts
    assert [one.text for one in target.across] == [one.text for one in both.across]
    assert both.across[-1].text == "1.5"
