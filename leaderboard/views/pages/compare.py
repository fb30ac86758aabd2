"""Compare: `?a=&b=&c=&d=`, two to four kernels by the id of their submission."""

import uuid

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils.http import urlencode

from leaderboard.models import Submission
from leaderboard.views.presenters.compare import LETTERS, comparison


def compare(request: HttpRequest) -> HttpResponse:
    """Without two kernels, the form that asks for them; ticked rows of a board come as `?k=`."""
    if ticked := request.GET.getlist("k"):
        names = dict(zip(LETTERS, ticked, strict=False))
        more = {"more": len(ticked) - len(LETTERS)} if len(ticked) > len(LETTERS) else {}
        return redirect(f"{request.path}?{urlencode({**names, **more})}")
    asked = {letter: request.GET.get(letter, "").strip() for letter in LETTERS}
    wanted = [value for value in asked.values() if value]
    context = {"asked": asked, "more": request.GET.get("more", ""), "section": "boards"}
    if len(wanted) < 2:
        context["one"] = wanted[0] if wanted else ""
        return render(request, "leaderboard/compare_form.html", context)
    context["comparison"] = comparison([_find(value) for value in wanted])
    return render(request, "leaderboard/compare.html", context)


def _find(value: str) -> Submission:
    """By its id, or by the last part of its page's address."""
    try:
        key = uuid.UUID(value.rstrip("/").rpartition("/")[2])
    except ValueError:
        raise Http404(f"{value[:80]!r} is no id of a submission; it has 32 hex digits.") from None
    rows = Submission.objects.select_related("entrant", "problem")
    found = rows.filter(pk=key).first()
    if found is None:
        raise Http404(f"There is no submission {key}.")
    return found
