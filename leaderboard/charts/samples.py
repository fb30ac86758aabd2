"""Figures: built here with plotly, drawn in the browser from JSON, still without a browser's help.

Each chart has three forms of the same numbers: a figure for Plotly, an SVG that needs no script,
and the table that its page shows beside it.
"""

import json
from dataclasses import dataclass

import plotly.graph_objects as go

from evaluator.records.evidence import TimingEvidence, TimingSample
from leaderboard.charts.scales import padded, round_values

WIDTH, HEIGHT = 960, 340
LEFT, RIGHT, TOP, BOTTOM = 64, 948, 12, 296
"""The still drawing's canvas and the edges of its plotting area, in its own units."""

WHO = ("kernel", "baseline")
MICROSECONDS, MILLISECONDS = ("µs", 1e3), ("ms", 1e6)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    name: str
    figure: dict[str, object]
    still: "Still"
    summary: str

    @property
    def script_id(self) -> str:
        return f"figure-{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Still:
    """Places on the canvas as text with one decimal, for SVG attributes; no inline style."""

    kernel: tuple[tuple[str, str], ...]
    baseline: tuple[tuple[str, str], ...]
    ticks: tuple[tuple[str, str], ...]
    borders: tuple[str, ...]
    unit: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Points (call number over all trials, span in the chart's unit) with a text for each."""

    name: str
    symbol: str
    xs: tuple[int, ...]
    ys: tuple[float, ...]
    labels: tuple[str, ...]


def samples_chart(timing: TimingEvidence) -> Chart:
    """Every timed call of the kernel and of the baseline, in order, with the trials' borders."""
    per_trial = max(1, timing.planned_calls)
    spans = [one.span_ns for one in (*timing.samples, *timing.baseline_samples)]
    unit, factor = MICROSECONDS if max(spans, default=0) < 10e6 else MILLISECONDS
    kernel = _series("kernel", "circle", timing.samples, per_trial, factor)
    baseline = _series(
        timing.baseline.name, "diamond-open", timing.baseline_samples, per_trial, factor
    )
    borders = tuple(number * per_trial + 0.5 for number in range(1, timing.planned_trials))
    return Chart(
        name="samples",
        figure=_figure((kernel, baseline), borders, unit),
        still=_still(kernel, baseline, borders, unit),
        summary=f"{len(kernel.xs)} calls of the kernel and {len(baseline.xs)} of the baseline",
    )


def _series(
    name: str, symbol: str, samples: tuple[TimingSample, ...], per_trial: int, factor: float
) -> Series:
    return Series(
        name=name,
        symbol=symbol,
        xs=tuple(sample.trial * per_trial + sample.call + 1 for sample in samples),
        ys=tuple(sample.span_ns / factor for sample in samples),
        labels=tuple(f"trial {sample.trial + 1}, call {sample.call + 1}" for sample in samples),
    )


def _figure(series: tuple[Series, ...], borders: tuple[float, ...], unit: str) -> dict[str, object]:
    figure = go.Figure()
    for number, one in enumerate(series):
        figure.add_scatter(
            x=one.xs,
            y=one.ys,
            text=one.labels,
            name=one.name,
            mode="markers",
            meta={"series": number},
            marker={"symbol": one.symbol, "size": 6},
            hovertemplate=f"%{{text}}<br>%{{y:.2f}} {unit}<extra>{WHO[number]}</extra>",
        )
    for border in borders:
        figure.add_vline(
            x=border, line={"width": 1, "dash": "dot", "color": "rgba(128,128,128,.7)"}
        )
    figure.update_layout(
        template="none",
        margin={"l": 64, "r": 12, "t": 12, "b": 44},
        showlegend=False,
        hovermode="closest",
        dragmode="zoom",
        xaxis={
            "title": {"text": "timed call, in order over the trials"},
            "zeroline": False,
            "showgrid": False,
            "range": [0, max((*series[0].xs, *series[1].xs), default=1) + 1],
        },
        yaxis={"title": {"text": f"span, {unit}"}, "zeroline": False},
    )
    return json.loads(figure.to_json(engine="json"))


def _still(kernel: Series, baseline: Series, borders: tuple[float, ...], unit: str) -> Still:
    ys = (*kernel.ys, *baseline.ys)
    last = max((*kernel.xs, *baseline.xs), default=1)
    low, high = padded(min(ys, default=0.0), max(ys, default=1.0))

    def across(x: float) -> str:
        return f"{LEFT + (x - 0.5) / last * (RIGHT - LEFT):.1f}"

    def down(y: float) -> str:
        return f"{TOP + (high - y) / (high - low) * (BOTTOM - TOP):.1f}"

    return Still(
        kernel=tuple((across(x), down(y)) for x, y in zip(kernel.xs, kernel.ys, strict=True)),
        baseline=tuple((across(x), down(y)) for x, y in zip(baseline.xs, baseline.ys, strict=True)),
        ticks=tuple((down(y), f"{y:g}") for y in round_values(low, high)),
        borders=tuple(across(border) for border in borders),
        unit=unit,
    )
