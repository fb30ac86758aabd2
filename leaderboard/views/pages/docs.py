"""Documentation on the site: what numbers mean, limits, what gets past, how to reproduce a row."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from evaluator import HARNESS_VERSION, SCORING_VERSION
from evaluator.metrics.turns import THRESHOLDS, TURN_LIMITS
from leaderboard.models import Evaluation, Problem
from leaderboard.views.presenters.docs import limits, noise_limits, stage_notes, trust_rules


def index(request: HttpRequest) -> HttpResponse:
    return _page(request, "docs", {})


def numbers(request: HttpRequest) -> HttpResponse:
    context = {
        "thresholds": THRESHOLDS,
        "turn_limits": TURN_LIMITS,
        "noise_limits": noise_limits(),
        "trust": trust_rules(),
    }
    return _page(request, "docs_numbers", context)


def tolerances(request: HttpRequest) -> HttpResponse:
    context = {
        "limits": limits(),
        "problems": [row.record for row in Problem.objects.current()],
        "in_flight": settings.PTXBOARD_IN_FLIGHT_LIMIT,
        "open_runs": settings.PTXBOARD_RUN_LIMIT,
        "parallel": settings.PTXBOARD_PARALLEL_LIMIT,
        "body_bytes": settings.PTXBOARD_MAX_BODY_BYTES,
    }
    return _page(request, "docs_limits", context)


def undetected(request: HttpRequest) -> HttpResponse:
    return _page(request, "docs_undetected", {"stages": stage_notes()})


def reproduce(request: HttpRequest) -> HttpResponse:
    """With the best row of the site as the example, where there is one."""
    rows = Evaluation.objects.valid().filter(speedup__isnull=False)
    best = rows.select_related("submission__problem").defer("record_json").order_by("-speedup")
    context = {"example": best.exclude(target="host").first() or best.first()}
    return _page(request, "docs_reproduce", context)


def _page(request: HttpRequest, name: str, context: dict[str, object]) -> HttpResponse:
    shared = {
        "section": "docs",
        "site": request.build_absolute_uri("/").rstrip("/"),
        "scoring_version": SCORING_VERSION,
        "harness_version": HARNESS_VERSION,
    }
    return render(request, f"leaderboard/{name}.html", {**shared, **context})
