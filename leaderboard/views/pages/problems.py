"""Problems: the list, and one problem with all that an author needs to start."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render

from leaderboard.models import Problem
from leaderboard.views.presenters.problems import problem_groups, problem_view


def problem_list(request: HttpRequest) -> HttpResponse:
    groups = problem_groups(Problem.objects.current())
    return render(
        request, "leaderboard/problem_list.html", {"groups": groups, "section": "problems"}
    )


def problem(request: HttpRequest, name: str) -> HttpResponse:
    row = get_object_or_404(Problem.objects.current(), name=name)
    context = {"view": problem_view(row.record), "problem": row.record, "section": "problems"}
    return render(request, "leaderboard/problem.html", context)
