"""An entrant's page: where it stands, what came of its turns, its kernels, its runs."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from leaderboard.models import Entrant, ModelStanding
from leaderboard.views.presenters.entrants import entrant_view

CHOICES = {"target": "target", "problem": "problem_name", "level": "level", "trust": "trust"}


def entrant(request: HttpRequest, slug: str) -> HttpResponse:
    """`?target=&problem=&level=&trust=` says of which standing the turns are drawn."""
    found = entrant_find(slug)
    context = {"view": entrant_view(found, _chosen(request, found)), "section": "boards"}
    return render(request, "leaderboard/entrant.html", context)


def entrant_find(slug: str) -> Entrant:
    rows = Entrant.objects.select_related("owner")
    found = None if "\x00" in slug else rows.filter(slug=slug).first()
    if found is None:
        raise Http404(f"There is no entrant {slug[:60]!r}; boards link to each of theirs.")
    return found


def _chosen(request: HttpRequest, found: Entrant) -> ModelStanding | None:
    """None where the address chooses nothing; Http404 where it chooses what there is not."""
    asked = {
        column: request.GET[name].replace("\x00", "")
        for name, column in CHOICES.items()
        if name in request.GET
    }
    if not asked:
        return None
    rows = ModelStanding.objects.filter(entrant=found, **asked).defer("curve_json")
    standing = rows.order_by("-taken_turns", "pk").first()
    if standing is None:
        told = ", ".join(
            f"{name} {request.GET[name][:60]!r}" for name in CHOICES if name in request.GET
        )
        raise Http404(f"{found.display_name[:60]} stands nowhere with {told}.")
    return standing
