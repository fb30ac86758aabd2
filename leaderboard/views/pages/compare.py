"""Compare: `?a=&b=&c=&d=`, two to four kernels by their submissions, or models by their names."""

import uuid
from collections.abc import Sequence

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import urlencode

from evaluator.targets import TARGETS
from leaderboard.models import Entrant, Submission
from leaderboard.refusals import InvalidFilter
from leaderboard.services.releases import release_source
from leaderboard.services.standings import target_board
from leaderboard.services.standings_filters import BoardFilters, read_filters
from leaderboard.views.pages.filters import choice
from leaderboard.views.presenters.compare import LETTERS, comparison
from leaderboard.views.presenters.compare_models import model_comparison, targets_of
from leaderboard.views.presenters.text import visible


def compare(request: HttpRequest) -> HttpResponse:
    """Without two of them, the form that asks; ticked rows of a board come as `?k=`."""
    if ticked := request.GET.getlist("k"):
        return redirect(f"{request.path}?{urlencode(_letters(request, ticked))}")
    asked = {letter: request.GET.get(letter, "").strip() for letter in LETTERS}
    wanted = [_last_part(value) for value in asked.values() if value]
    context = {"asked": asked, "more": request.GET.get("more", ""), "section": "boards"}
    if len(wanted) < 2:
        context["one"] = wanted[0] if wanted else ""
        return render(request, "leaderboard/compare_form.html", context)
    keys = [_key(value) for value in wanted]
    if not any(keys):
        return _models(request, [_entrant(value) for value in wanted], context)
    context["comparison"] = comparison([_submission(value) for value in wanted])
    return render(request, "leaderboard/compare.html", context)


def _letters(request: HttpRequest, ticked: Sequence[str]) -> dict[str, object]:
    """Each thing once, as `a` to `d`; `more` says how many were ticked beyond."""
    unique = list(dict.fromkeys(ticked))
    found: dict[str, object] = dict(zip(LETTERS, unique, strict=False))
    if len(unique) > len(LETTERS):
        found["more"] = len(unique) - len(LETTERS)
    if target := request.GET.get("target"):
        found["target"] = target
    return found


def _models(
    request: HttpRequest, entrants: Sequence[Entrant], context: dict[str, object]
) -> HttpResponse:
    stands = targets_of(entrants)
    usual = next((slug for slug in TARGETS if slug in stands), next(iter(TARGETS)))
    target = choice(request, "target", list(TARGETS)) or usual
    filters = _filters(request)
    context.update(
        view=model_comparison(target_board(target=target, filters=filters), entrants),
        targets=[one for one in TARGETS.values() if one.slug in stands],
        target=TARGETS[target],
        names=urlencode([(letter, value) for letter, value in context["asked"].items() if value]),
        release_source=release_source(),
    )
    return render(request, "leaderboard/compare_models.html", context)


def _filters(request: HttpRequest) -> BoardFilters:
    """Those of a board; every kind of trust is shown unless one is chosen, each marked."""
    try:
        return read_filters({"trust": "all", **request.GET.dict()})
    except InvalidFilter as refusal:
        raise Http404(visible(str(refusal))) from refusal


def _last_part(value: str) -> str:
    """Of the address of a page, or the whole of a name."""
    return value.rstrip("/").rpartition("/")[2]


def _key(value: str) -> uuid.UUID | None:
    try:
        return uuid.UUID(value)
    except ValueError:
        return None


def _submission(value: str) -> Submission:
    key = _key(value)
    if key is None:
        raise Http404(
            f"{value[:80]!r} is no id of a submission; kernels are compared with kernels, "
            "models with models."
        )
    rows = Submission.objects.select_related("entrant", "problem")
    found = rows.filter(pk=key).first()
    if found is None:
        raise Http404(f"There is no submission {key}.")
    return found


def _entrant(value: str) -> Entrant:
    found = None if "\x00" in value else Entrant.objects.filter(slug=value).first()
    if found is None:
        raise Http404(
            f"{value[:80]!r} is neither the id of a submission nor the name of an entrant as its "
            "page's address has it."
        )
    return found
