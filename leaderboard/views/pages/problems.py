"""Problems: the list, and one problem with all that an author needs to start."""

from difflib import get_close_matches

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from leaderboard.models import Problem
from leaderboard.views.presenters.problems import problem_groups, problem_view


def problem_list(request: HttpRequest) -> HttpResponse:
    groups = problem_groups(Problem.objects.current())
    return render(
        request, "leaderboard/problem_list.html", {"groups": groups, "section": "problems"}
    )


def problem(request: HttpRequest, name: str) -> HttpResponse:
    row = problem_find(name)
    context = {"view": problem_view(row.record), "problem": row.record, "section": "problems"}
    return render(request, "leaderboard/problem.html", context)


def problem_find(name: str) -> Problem:
    """The current version; Http404 suggests the nearest name."""
    row = None if "\x00" in name else Problem.objects.current().filter(name=name).first()
    if row is None:
        names = Problem.objects.current().values_list("name", flat=True)
        near = get_close_matches(name, names, n=1, cutoff=0.6)
        hint = f" Did you mean {near[0]!r}?" if near else " The list of problems has them all."
        raise Http404(f"There is no problem {name[:100]!r}.{hint}")
    return row
