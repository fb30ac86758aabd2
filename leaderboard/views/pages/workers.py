"""Who measures: every worker that ever reported, its machine and its state."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from leaderboard.models import Worker
from leaderboard.views.presenters.workers import worker_views

MOST_WORKERS = 200


def workers(request: HttpRequest) -> HttpResponse:
    views = worker_views(
        Worker.objects.order_by("-last_seen", "name")[:MOST_WORKERS], timezone.now()
    )
    return render(request, "leaderboard/workers.html", {"workers": views, "section": "workers"})
