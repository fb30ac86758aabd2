"""Probes: /healthz says that the process answers, /readyz that it can do its work."""

from django.http import HttpRequest, JsonResponse

from leaderboard.services.readiness import readiness


def healthz(request: HttpRequest) -> JsonResponse:
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> JsonResponse:
    report = readiness()
    return JsonResponse(report.to_json(), status=200 if report.ready else 503)
