"""The front page: who leads where, what was decided lately, who is measuring."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from leaderboard.models import Problem, Submission, Worker
from leaderboard.views.presenters.grid import board_grid, leaders
from leaderboard.views.presenters.lists import listed

RECENT = 8


def home(request: HttpRequest) -> HttpResponse:
    problems = list(Problem.objects.current().defer("record_json"))
    recent = Submission.objects.for_list()[:RECENT]
    now = timezone.now()
    context = {
        "grid": board_grid(problems, leaders()),
        "recent": [listed(one) for one in recent],
        "workers": list(Worker.objects.online(now)),
        "hide_next": True,
    }
    return render(request, "leaderboard/home.html", context)
