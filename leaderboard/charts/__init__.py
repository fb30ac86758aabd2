"""Figures, each drawn on the server as SVG and shown beside a table of the same numbers."""

from leaderboard.charts.samples import Chart, samples_chart

__all__ = ["Chart", "samples_chart"]
