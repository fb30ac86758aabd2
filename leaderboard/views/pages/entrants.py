"""An entrant's page: where it stands, its kernels, its runs."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from leaderboard.models import Entrant
from leaderboard.views.presenters.entrants import entrant_view


def entrant(request: HttpRequest, slug: str) -> HttpResponse:
    found = entrant_find(slug)
    context = {"view": entrant_view(found), "section": "boards"}
    return render(request, "leaderboard/entrant.html", context)


def entrant_find(slug: str) -> Entrant:
    found = None if "\x00" in slug else Entrant.objects.filter(slug=slug).first()
    if found is None:
        raise Http404(f"There is no entrant {slug[:60]!r}; boards link to each of theirs.")
    return found
