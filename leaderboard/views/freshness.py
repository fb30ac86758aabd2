"""Conditional GET for boards: who has the newest board already gets 304 and no body.

A tag is weak: it covers what a board is made of, not its bytes. Not covered: names that an operator
changes in the database by hand, which show once the board changes for another reason.
"""

from functools import cache
from hashlib import sha256
from pathlib import Path

from django.conf import settings
from django.db.models import Subquery
from django.http import HttpRequest, HttpResponse
from django.utils.cache import get_conditional_response, patch_cache_control, patch_vary_headers

from evaluator.records.base import digest_of
from leaderboard.models import Correction, Evaluation, Problem
from leaderboard.services.boards import BoardState, board_state
from leaderboard.templatetags.units import age_text

SITE_PARTS = ("leaderboard", "templates", "static", "evaluator/targets.py")


def board_tag(*, target: str, problem: Problem, more: tuple[str, ...] = ()) -> str:
    """ETag of a board in one form; `more` is whatever else that form depends on."""
    return _tag(board_state(target=target, problem=problem), problem, more)


def page_tag(request: HttpRequest, *, target: str, problem: Problem) -> str | None:
    """ETag of a board's page, which also says how old it is; None for whoever is signed in."""
    if settings.SESSION_COOKIE_NAME in request.COOKIES or "messages" in request.COOKIES:
        return None
    state = board_state(target=target, problem=problem)
    age = age_text(state.updated_at) if state.updated_at else ""
    return _tag(state, problem, (request.COOKIES.get("theme", "")[:10], age))


def kernels_state() -> str:
    """Changes whenever a kernel's evaluation came or was corrected; one query by primary keys."""
    newest_correction = Correction.objects.order_by("-pk").values("pk")[:1]
    rows = Evaluation.objects.order_by("-pk").annotate(correction=Subquery(newest_correction))
    return str(rows.values_list("pk", "correction").first())


def _tag(state: BoardState, problem: Problem, more: tuple[str, ...]) -> str:
    parts = [*map(str, state.parts), problem.digest, site_digest(), *more]
    return f'W/"{digest_of(parts)[:32]}"'


@cache
def site_digest() -> str:
    """Of the site's own code, templates and styles: a newer site makes other pages of one board."""
    digest = sha256()
    for part in SITE_PARTS:
        root = Path(settings.BASE_DIR) / part
        for path in sorted(root.rglob("*")) if root.is_dir() else [root]:
            if path.is_file() and path.suffix != ".pyc":
                digest.update(f"{path.relative_to(settings.BASE_DIR)}\0".encode())
                digest.update(path.read_bytes())
    return digest.hexdigest()


def not_modified(request: HttpRequest, tag: str | None) -> HttpResponse | None:
    """The 304 for a request whose If-None-Match names this tag; None where a body is wanted."""
    answer = get_conditional_response(request, etag=tag) if tag else None
    return tagged(answer, tag) if answer else None


def tagged(response: HttpResponse, tag: str | None) -> HttpResponse:
    """Caches may keep the answer but ask each time whether it still holds."""
    if tag:
        response["ETag"] = tag
        patch_cache_control(response, no_cache=True)
        patch_vary_headers(response, ["Cookie"])
    return response
