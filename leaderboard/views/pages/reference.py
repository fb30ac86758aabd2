"""Pages that explain: targets, and how verdicts are reached."""

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from evaluator.records.candidate import MAX_SOURCE_BYTES, MAX_SOURCE_FILES
from evaluator.targets import TARGETS
from leaderboard.views.presenters.rules import stage_rules, tier_rules, verdict_rules


def targets(request: HttpRequest) -> HttpResponse:
    context = {"targets": list(TARGETS.values()), "section": "targets"}
    return render(request, "leaderboard/targets.html", context)


def api_guide(request: HttpRequest) -> HttpResponse:
    limits = {
        "body_bytes": settings.PTXBOARD_MAX_BODY_BYTES,
        "source_bytes": MAX_SOURCE_BYTES,
        "source_files": MAX_SOURCE_FILES,
        "in_flight": settings.PTXBOARD_IN_FLIGHT_LIMIT,
    }
    site = request.build_absolute_uri("/").rstrip("/")
    context = {"site": site, "limits": limits, "section": "api"}
    return render(request, "leaderboard/api_guide.html", context)


def rules(request: HttpRequest) -> HttpResponse:
    context = {
        "verdicts": verdict_rules(),
        "stages": stage_rules(),
        "tiers": tier_rules(),
        "section": "rules",
    }
    return render(request, "leaderboard/rules.html", context)
