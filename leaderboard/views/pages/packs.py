"""Knowledge packs: what a model is told about an architecture, to read and to download."""

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render

from leaderboard.views.presenters.packs import pack_row, pack_view
from packs.pack import PACKS, Level, Pack, find_pack

TEXT = "text/plain; charset=utf-8"


def pack_list(request: HttpRequest) -> HttpResponse:
    rows = [pack_row(find_pack(name)) for name in PACKS]
    return render(request, "leaderboard/pack_list.html", {"rows": rows, "section": "packs"})


def pack(request: HttpRequest, name: str) -> HttpResponse:
    view = pack_view(pack_find(name), level_find(request.GET.get("level", Level.CONTRACTS)))
    return render(request, "leaderboard/pack.html", {"view": view, "section": "packs"})


def pack_text(request: HttpRequest, name: str) -> HttpResponse:
    """The very bytes that enter a prompt; level `schedule` without `?schedule=` has them all."""
    found = pack_find(name)
    level = level_find(request.GET.get("level", Level.CONTRACTS))
    schedules = request.GET.getlist("schedule")
    if not schedules and level is Level.SCHEDULE:
        schedules = [schedule.slug for schedule in found.schedules]
    try:
        text = found.text(level, schedules=schedules)
    except (KeyError, ValueError) as error:
        raise Http404(f"{error.args[0]}.") from None
    response = HttpResponse(text, content_type=TEXT)
    response["Content-Disposition"] = f'inline; filename="{name}-{level.value}.md"'
    return response


def pack_find(name: str) -> Pack:
    """Http404 names the packs that there are."""
    try:
        return find_pack(name)
    except KeyError:
        raise Http404(f"There is no pack {name[:60]!r}; packs: {', '.join(PACKS)}.") from None


def level_find(text: str) -> Level:
    try:
        return Level(text)
    except ValueError:
        raise Http404(f"There is no level {text[:60]!r}; levels: {', '.join(Level)}.") from None
