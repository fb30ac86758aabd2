"""Boards: one problem on one target, and the grid of them all."""

import csv

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from evaluator.targets import TARGETS, Target
from leaderboard.models import Problem
from leaderboard.services.boards import board_read
from leaderboard.views.freshness import board_tag, not_modified, page_tag, tagged
from leaderboard.views.kept import kept
from leaderboard.views.pages.filters import page_exists, page_number
from leaderboard.views.pages.problems import problem_find
from leaderboard.views.presenters import boards as present
from leaderboard.views.presenters.citations import bibtex
from leaderboard.views.presenters.grid import board_grid, leaders
from leaderboard.views.presenters.tables import BOARD_COLUMNS, board_cells, spreadsheet_safe

PAGE_ROWS = 50


def board_list(request: HttpRequest) -> HttpResponse:
    problems = list(Problem.objects.current().defer("record_json"))
    context = {"grid": board_grid(problems, leaders()), "section": "boards"}
    return render(request, "leaderboard/board_list.html", context)


def board(request: HttpRequest, target: str, problem: str) -> HttpResponse:
    row, place = _find(target, problem)
    tag = page_tag(request, target=target, problem=row)
    if answer := not_modified(request, tag):
        return answer
    return tagged(kept(request, tag, lambda: _board_page(request, row, place, tag)), tag)


def _board_page(request: HttpRequest, row: Problem, place: Target, tag: str | None) -> HttpResponse:
    target = place.slug
    user_id = request.user.id if request.user.is_authenticated else None
    number = page_number(request)
    read = board_read(target=target, problem=row, start=(number - 1) * PAGE_ROWS, count=PAGE_ROWS)
    page_count = -(-read.row_count // PAGE_ROWS)
    page_exists(number, page_count)
    context = {
        "board": present.board(read, user_id=user_id),
        "bibtex": bibtex(
            key=f"ptxboard-{target}-{row.name}",
            title=f"{row.title} on {place.title}, scoring version {read.scoring_version}",
            url=request.build_absolute_uri(reverse("board", args=[target, row.name])),
            updated_at=max((one.created_at for one in read.rows), default=None),
            state=(tag or "")[3:15],
        ),
        "page_number": number,
        "page_count": page_count,
        "problem": row.record,
        "target": place,
        "scoring_version": read.scoring_version,
        "section": "boards",
    }
    return render(request, "leaderboard/board.html", context)


def board_csv(request: HttpRequest, target: str, problem: str) -> HttpResponse:
    """The page's rows with full precision; text that a spreadsheet would run is disarmed.

    The API serves it too, so that the page and the API cannot disagree.
    """
    row, place = _find(target, problem)
    tag = board_tag(target=target, problem=row, more=("csv",))
    if answer := not_modified(request, tag):
        return answer
    read = board_read(target=target, problem=row)
    shown = present.board(read, user_id=None)
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{place.slug}_{row.name}.csv"'
    writer = csv.writer(response)
    writer.writerow(BOARD_COLUMNS)
    writer.writerows(
        [spreadsheet_safe(cell) for cell in board_cells(one, row.name, place.slug)]
        for one in shown.rows
    )
    return tagged(response, tag)


def _find(target: str, problem: str) -> tuple[Problem, Target]:
    if target not in TARGETS:
        raise Http404(f"There is no target {target!r}. Known targets: {', '.join(TARGETS)}.")
    row = problem_find(problem)
    if target not in row.targets:
        offered = ", ".join(row.targets)
        raise Http404(f"{row.name} is not offered on {target}. It is offered on: {offered}.")
    return row, TARGETS[target]
