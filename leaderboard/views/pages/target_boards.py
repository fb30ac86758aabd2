"""The board of a target: models down, problems across, ranked by Fast_p at a pinned p."""

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse

from evaluator.records.base import digest_of
from evaluator.targets import TARGETS
from leaderboard.models import Entrant, Problem
from leaderboard.refusals import InvalidFilter
from leaderboard.services.releases import release_source
from leaderboard.services.standings import TargetBoard, target_board
from leaderboard.services.standings_filters import (
    LANGUAGES,
    LEVELS,
    BoardFilters,
    Trust,
    read_filters,
)
from leaderboard.templatetags.units import age_text
from leaderboard.views.freshness import kernels_state, not_modified, site_digest, tagged
from leaderboard.views.kept import kept
from leaderboard.views.pages.filters import page_exists, page_number
from leaderboard.views.presenters.citations import bibtex
from leaderboard.views.presenters.grid import board_grid, leaders
from leaderboard.views.presenters.target_boards import PAGE_ROWS, query_of, target_board_view

TRUST_CHOICES = ("measured", "all", *Trust.values)


def board_of_target(request: HttpRequest, target: str) -> HttpResponse:
    if target not in TARGETS:
        raise Http404(f"There is no target {target[:60]!r}. Known targets: {', '.join(TARGETS)}.")
    try:
        filters = read_filters(request.GET)
    except InvalidFilter as refusal:
        context = {"refusal": refusal, "target": TARGETS[target], "section": "boards"}
        return render(request, "leaderboard/target_board_refused.html", context, status=400)
    read = target_board(target=target, filters=filters)
    tag = _tag(request, read)
    if answer := not_modified(request, tag):
        return answer

    def make() -> HttpResponse:
        return render(request, "leaderboard/target_board.html", _context(request, read, filters))

    return tagged(kept(request, tag, make), tag)


def _context(request: HttpRequest, read: TargetBoard, filters: BoardFilters) -> dict[str, object]:
    number, page_count = page_number(request), -(-len(read.ranked) // PAGE_ROWS)
    page_exists(number, page_count)
    view = target_board_view(read, mine=_mine(request), page=number, on=request.GET.getlist("on"))
    address = request.build_absolute_uri(reverse("target-board", args=[read.target.slug]))
    return {
        "view": view,
        "target": read.target,
        "kernels": _kernels(read),
        "efforts": view.efforts,
        "release_source": release_source(),
        "page_number": number,
        "page_count": page_count,
        "query": view.query,
        "trusts": TRUST_CHOICES,
        "languages": LANGUAGES,
        "levels": [*LEVELS, "none"],
        "address": address,
        "bibtex": bibtex(
            key=f"ptxboard-{read.target.slug}",
            title=f"Models on the {read.target.title}, scoring version {filters.scoring_version}",
            url=f"{address}?{query_of(filters)}".rstrip("?"),
            updated_at=read.updated_at,
            state=read.tag[:12],
        ),
        "section": "boards",
    }


def _mine(request: HttpRequest) -> frozenset[int]:
    """Entrants of whoever is signed in: the person's own and the models that are theirs."""
    user = request.user
    if not user.is_authenticated:
        return frozenset()
    own = Entrant.objects.filter(user=user) | Entrant.objects.filter(owner=user)
    return frozenset(own.values_list("pk", flat=True))


def _kernels(read: TargetBoard) -> list[object]:
    """Boards of kernels on this target with their leaders."""
    slug = read.target.slug
    problems = [
        one
        for one in Problem.objects.current().defer("record_json")
        if slug in one.targets and one.development == read.target.development
    ]
    found = []
    for _, rows in board_grid(problems, leaders()).groups:
        for row in rows:
            cell = next(one for one in row.cells if one.target.slug == slug)
            found.append({"problem": row.problem, "leader": cell.leader})
    return found


def _tag(request: HttpRequest, read: TargetBoard) -> str | None:
    """None for whoever is signed in: their own rows are marked. Leading kernels are shown too."""
    if settings.SESSION_COOKIE_NAME in request.COOKIES or "messages" in request.COOKIES:
        return None
    age = age_text(read.updated_at) if read.updated_at else ""
    theme = request.COOKIES.get("theme", "")[:10]
    parts = [read.tag, kernels_state(), site_digest(), theme, age]
    parts += [request.get_full_path(), request.get_host()]
    return f'W/"{digest_of(parts)[:32]}"'
