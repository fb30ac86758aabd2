"""Boards of models by REST: a target's table, one problem's Fast_p, CSV, and a badge per row."""

import csv
from dataclasses import asdict
from typing import Any

from django.http import Http404, HttpResponse
from django.urls import reverse
from django.utils.html import escape
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.request import Request
from rest_framework.views import APIView

from evaluator.metrics.curves import Steps
from evaluator.metrics.turns import THRESHOLDS, TURN_LIMITS, Band, Triplet
from evaluator.records.base import digest_of
from evaluator.targets import TARGETS
from leaderboard.api import schema
from leaderboard.api.bodies import StrictJSONRenderer
from leaderboard.api.catalogue import find_problem
from leaderboard.models import Problem
from leaderboard.services.standings import (
    Cell,
    ModelRow,
    ProblemCurve,
    TargetBoard,
    board_tag_of,
    problem_curves,
    target_board,
)
from leaderboard.services.standings_filters import BoardFilters, read_filters
from leaderboard.views.freshness import not_modified, site_digest, tagged
from leaderboard.views.kept import kept
from leaderboard.views.presenters.tables import spreadsheet_safe

FILTERS = [
    OpenApiParameter("trust", description="one kind, `measured` (the default) or `all`"),
    OpenApiParameter("language"),
    OpenApiParameter("level", description="knowledge level, `+guidance` where it was given too"),
    OpenApiParameter("scoring_version"),
    OpenApiParameter("complete", description="1: only models with every problem of the board"),
    OpenApiParameter("p", description="ranks by Fast_p at this speedup"),
    OpenApiParameter("at_most", description="ranks by the first so many turns"),
    OpenApiParameter("instructions", description="1: ranks by turns with target instructions"),
]
MOST_ROWS = 1000
"""Of one JSON answer; the CSV has them all."""

CELL_COLUMNS = (
    "planned_turns",
    "taken_turns",
    "excluded_turns",
    "prompt_tokens",
    "completion_tokens",
    "reasoning_tokens",
    "cost_usd",
    "run_count",
    "is_final",
    "source",
)
CSV_COLUMNS = (
    "rank",
    "entrant",
    "name",
    "target",
    "problem",
    "language",
    "level",
    "trust",
    "scoring_version",
    "score",
    "share",
    *(f"rate_{limit}" for limit in TURN_LIMITS),
    *(f"target_rate_{limit}" for limit in TURN_LIMITS),
    *(f"best_{limit}" for limit in TURN_LIMITS),
    *(f"target_best_{limit}" for limit in TURN_LIMITS),
    *CELL_COLUMNS,
)


class TargetBoardOne(APIView):
    @extend_schema(responses=schema.AnyObject, parameters=FILTERS)
    def get(self, request: Request, target: str) -> HttpResponse:
        """Models x problems; shares are fractions of planned turns, null is unknown.

        The first 1000 rows, `row_count` says how many there are; `?format=csv` gives a line a cell
        of all. Send the ETag back as If-None-Match.
        """
        check_target(target)
        filters = read_filters(request.query_params)
        wanted = "csv" if request.query_params.get("format") == "csv" else "json"
        state = board_tag_of(target)
        tag = _tag(state, wanted, request, filters)
        if answer := not_modified(request._request, tag):
            return answer

        def make() -> HttpResponse:
            board = target_board(target=target, filters=filters, tag=state)
            if wanted == "csv":
                return target_board_csv(board)
            return json_answer(target_board_json(board, request))

        return tagged(kept(request._request, tag, make), tag)


class TargetBoardCsv(APIView):
    @extend_schema(responses={(200, "text/csv"): str}, parameters=FILTERS)
    def get(self, request: Request, target: str) -> HttpResponse:
        check_target(target)
        filters = read_filters(request.query_params)
        state = board_tag_of(target)
        tag = _tag(state, "csv", request, filters)
        if answer := not_modified(request._request, tag):
            return answer

        def make() -> HttpResponse:
            return target_board_csv(target_board(target=target, filters=filters, tag=state))

        return tagged(kept(request._request, tag, make), tag)


class ProblemFastP(APIView):
    @extend_schema(responses=schema.AnyObject, parameters=FILTERS)
    def get(self, request: Request, target: str, problem: str) -> HttpResponse:
        """Fast_p at `p` and as steps, for all turns and for those with target instructions.

        Models in order of Fast_p at `p`. The band goes over prompt variants.
        """
        row = find_offered(target, problem)
        filters = read_filters(request.query_params)
        tag = _tag(board_tag_of(target), "fast-p", request, filters, row.digest)
        if answer := not_modified(request._request, tag):
            return answer

        def make() -> HttpResponse:
            return json_answer(fast_p_json(target, row, filters))

        return tagged(kept(request._request, tag, make), tag)


class BoardBadge(APIView):
    @extend_schema(responses={(200, "image/svg+xml"): bytes}, parameters=FILTERS)
    def get(self, request: Request, target: str, key: str) -> HttpResponse:
        """A small picture of one row for a README; `key` is the row's, as the board tells it."""
        check_target(target)
        filters = read_filters({"trust": "all", **request.query_params.dict()})
        state = board_tag_of(target)
        tag = _tag(state, f"badge {key}", request, filters)
        if answer := not_modified(request._request, tag):
            return answer
        board = target_board(target=target, filters=filters, tag=state)
        row = next((one for one in board.rows if one.key == key), None)
        if row is None:
            raise Http404(f"There is no row {key[:60]!r} on the board of {target}.")
        return tagged(HttpResponse(badge_svg(board, row), content_type="image/svg+xml"), tag)


def json_answer(value: dict[str, Any]) -> HttpResponse:
    """Rendered here and not by the framework, so that it can be kept."""
    return HttpResponse(StrictJSONRenderer().render(value), content_type="application/json")


def check_target(target: str) -> None:
    if target not in TARGETS:
        raise Http404(f"There is no target {target[:60]!r}; known targets: {', '.join(TARGETS)}.")


def find_offered(target: str, problem: str) -> Problem:
    """Raises Http404 in words."""
    check_target(target)
    row = find_problem(problem)
    if target not in row.targets:
        offered = ", ".join(row.targets)
        raise Http404(f"{row.name} is not offered on {target}; it is on: {offered}.")
    return row


def _tag(state: str, form: str, request: Request, filters: BoardFilters, *more: str) -> str:
    parts = (state, form, request.get_host(), repr(filters), site_digest(), *more)
    return f'W/"{digest_of(list(parts))[:32]}"'


def target_board_json(board: TargetBoard, request: Request) -> dict[str, Any]:
    return {
        "target": board.target.slug,
        "title": board.target.title,
        "development": board.target.development,
        "filters": board.filters.to_json(),
        "thresholds": list(THRESHOLDS),
        "turn_limits": list(TURN_LIMITS),
        "problems": [
            {
                "name": name,
                "title": board.titles[name],
                "fast_p_url": request.build_absolute_uri(
                    reverse("api:fast-p", args=[board.target.slug, name])
                ),
            }
            for name in board.problems
        ],
        "updated_at": board.updated_at.isoformat() if board.updated_at else None,
        "row_count": len(board.rows),
        "rows_cut": len(board.rows) > MOST_ROWS,
        "rows": [row_json(row, board, request) for row in board.rows[:MOST_ROWS]],
    }


def row_json(row: ModelRow, board: TargetBoard, request: Request) -> dict[str, Any]:
    runs = request.build_absolute_uri(reverse("api:model-runs"))
    badge = reverse("api:board-badge", args=[board.target.slug, row.key])
    return {
        "rank": row.rank,
        "key": row.key,
        "entrant": {
            "slug": row.entrant.slug,
            "display_name": row.entrant.display_name,
            "kind": row.entrant.kind,
        },
        "language": row.language,
        "level": row.level,
        "trust": row.trust,
        "scoring_version": row.scoring_version,
        "score": row.score,
        "mean_rate": row.mean_rate,
        "best_speedup": row.best_speedup,
        "coverage": {"problems": len(row.cells), "of": len(board.problems)},
        "complete": row.is_complete,
        "badge_url": request.build_absolute_uri(badge),
        "cells": {name: cell_json(cell, runs) for name, cell in row.cells.items()},
    }


def cell_json(cell: Cell, runs: str) -> dict[str, Any]:
    """Triplets are at <= 1, <= 4 and <= 8 turns; `runs` is the address below which runs are."""
    return {
        "any": {
            "correctness_rate": _triplet(cell.rates),
            "best_speedup": _triplet(cell.bests),
            "fast_p": cell.fast,
        },
        "target_instructions": {
            "known": cell.knows_instructions,
            "correctness_rate": _triplet(cell.target_rates),
            "best_speedup": _triplet(cell.target_bests),
            "fast_p": cell.target_fast,
        },
        "share": cell.share,
        **{name: getattr(cell, name) for name in CELL_COLUMNS},
        "unmetered_turns": cell.unmetered_turns,
        "newest_run": f"{runs}{cell.newest_run}/" if cell.newest_run else None,
        "updated_at": cell.updated_at.isoformat(),
    }


def _triplet(one: Triplet) -> dict[str, float | None]:
    return {"first": one.first, "fourth": one.fourth, "eighth": one.eighth}


def fast_p_json(target: str, problem: Problem, filters: BoardFilters) -> dict[str, Any]:
    found = problem_curves(target=target, problem=problem, filters=filters)
    return {
        "target": target,
        "problem": problem.name,
        "problem_digest": problem.digest,
        "filters": filters.to_json(),
        "p": filters.p,
        "at_most": filters.at_most,
        "models": [curve_json(one, filters) for one in found],
    }


def curve_json(one: ProblemCurve, filters: BoardFilters) -> dict[str, Any]:
    found = {"any": _line(one, filters, instructions=False)}
    found["target_instructions"] = (
        _line(one, filters, instructions=True) if one.knows_instructions else None
    )
    return {
        "entrant": {
            "slug": one.entrant.slug,
            "display_name": one.entrant.display_name,
            "kind": one.entrant.kind,
        },
        "language": one.language,
        "level": one.level,
        "trust": one.trust,
        "scoring_version": one.scoring_version,
        "final": one.is_final,
        **found,
    }


def _line(one: ProblemCurve, filters: BoardFilters, *, instructions: bool) -> dict[str, Any]:
    """`steps`: the share holds from its p to the next; `over_variants`: at the pinned p."""
    steps: Steps = one.curve.steps(at_most=filters.at_most, instructions=instructions)
    band: Band | None = one.curve.band(
        filters.p, at_most=filters.at_most, instructions=instructions
    )
    return {
        "planned_turns": steps.planned,
        "correct_turns": steps.correct,
        "correctness_rate": steps.correctness_rate,
        "best_speedup": steps.best_speedup,
        "fast_p": steps.fast_p(filters.p),
        "over_variants": asdict(band) if band else None,
        "steps": [{"p": p, "share": share} for p, share in steps.points()],
    }


def target_board_csv(board: TargetBoard) -> HttpResponse:
    """A line a cell, full precision; text that a spreadsheet would run is disarmed."""
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    name = f"{board.target.slug}_models.csv"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    writer = csv.writer(response)
    writer.writerow(CSV_COLUMNS)
    writer.writerows(
        [spreadsheet_safe(value) for value in _csv_cells(board, row, row.cells[problem])]
        for row in board.rows
        for problem in board.problems
        if problem in row.cells
    )
    return response


def _csv_cells(board: TargetBoard, row: ModelRow, cell: Cell) -> tuple[object, ...]:
    triplets = (cell.rates, cell.target_rates, cell.bests, cell.target_bests)
    return (
        row.rank,
        row.entrant.slug,
        row.entrant.display_name,
        board.target.slug,
        cell.problem,
        row.language,
        row.level,
        row.trust,
        row.scoring_version,
        row.score,
        cell.share,
        *(value for one in triplets for value in (one.first, one.fourth, one.eighth)),
        *(getattr(cell, name) for name in CELL_COLUMNS),
    )


BADGE = """\
<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="20" role="img" aria-label="{text}">
<title>{text}</title>
<rect width="{width}" height="20" rx="3" fill="#1f2430"/>
<rect x="{left}" width="{right}" height="20" rx="3" fill="{colour}"/>
<g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">
<text x="6" y="14" textLength="{label_length}">{label}</text>
<text x="{value_x}" y="14" textLength="{value_length}">{value}</text>
</g>
</svg>
"""
CHARACTER_PX = 6.6
LONGEST_NAME = 24
COLOURS = {"verified": "#0a6b52", "reproduced": "#0a6b52"}


def badge_svg(board: TargetBoard, row: ModelRow) -> str:
    """Name and target, then rank and score with the trust where it is not ours; no script."""
    name = "".join(c for c in row.entrant.display_name if c.isprintable())[:LONGEST_NAME]
    label = f"{name} on {board.target.slug}"
    score = f"{100 * row.score:.1f} %" if row.score is not None else "no score"
    trust = "" if row.trust in COLOURS else f", {row.trust}"
    rank = f"#{row.rank} " if row.rank else ""
    value = f"{rank}Fast_{board.filters.p:g} {score}{trust}"
    label_length, value_length = (round(CHARACTER_PX * len(text)) for text in (label, value))
    left, right = label_length + 12, value_length + 12
    return BADGE.format(
        width=left + right,
        left=left,
        right=right,
        value_x=left + 6,
        label_length=label_length,
        value_length=value_length,
        label=escape(label),
        value=escape(value),
        text=escape(f"PTXBoard: {label}: {value}"),
        colour=COLOURS.get(row.trust, "#5c5f66"),
    )
