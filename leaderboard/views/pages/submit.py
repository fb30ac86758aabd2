"""The form that hands in a kernel; works without JavaScript and keeps what was typed."""

import re

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render

from evaluator.targets import TARGETS
from leaderboard.forms import SubmissionForm
from leaderboard.models import Submission
from leaderboard.refusals import DuplicateContent, FieldError, Refusal
from leaderboard.services.entrants import entrant_of
from leaderboard.services.submissions import Draft, quota_of, submission_create

FIELD_OF = {"sources": "source", "entry_symbol": "source"}


@login_required
def submit(request: HttpRequest) -> HttpResponse:
    if request.method == "POST":
        form = SubmissionForm(request.POST, request.FILES)
        if form.is_valid() and (submission := _hand_in(request, form)):
            return redirect(submission, permanent=False)
        return _page(request, form, status=422)
    return _page(request, SubmissionForm(initial=_chosen(request)))


def _hand_in(request: HttpRequest, form: SubmissionForm) -> Submission | None:
    """The submission, or None with the refusal written beside the fields that it is about."""
    try:
        created = submission_create(entrant=entrant_of(user=request.user), draft=_draft(form))
    except DuplicateContent as known:
        messages.info(request, f"{known.detail[:1].upper()}{known.detail[1:]}.")
        return known.submission
    except Refusal as refusal:
        for error in refusal.errors:
            form.add_error(_field(form, error), error.message)
        if not refusal.errors:
            form.add_error(None, refusal.detail)
        return None
    return created.submission


def _field(form: SubmissionForm, error: FieldError) -> str | None:
    """The field that a pointer such as `sources[1].path` is about; None for the whole form."""
    name = re.split(r"[.\[]", error.pointer)[0]
    if name == "sources" and form.cleaned_data.get("files"):
        return "files"
    name = FIELD_OF.get(name, name)
    return name if name in form.fields else None


def _draft(form: SubmissionForm) -> Draft:
    values = form.cleaned_data
    return Draft(
        problem=values["problem"],
        target=values["target"],
        language=values["language"],
        binding=values["binding"],
        sources=form.sources,
        name=values["name"],
        description=values["description"],
        entry_file=values["entry_file"] or None,
    )


def _chosen(request: HttpRequest) -> dict[str, str]:
    """What links such as /submit/?problem=...&target=... ask for; unknown words are ignored."""
    chosen = {
        key: value
        for key in ("problem", "target", "language", "binding")
        if (value := request.GET.get(key, "")) and len(value) <= 100
    }
    target = TARGETS.get(chosen.get("target", ""))
    if target and "language" not in chosen:
        chosen["language"] = target.languages[0]
    return chosen


def _page(request: HttpRequest, form: SubmissionForm, status: int = 200) -> HttpResponse:
    context = {
        "form": form,
        "quota": quota_of(entrant=entrant_of(user=request.user)),
        "section": "submit",
    }
    return render(request, "leaderboard/submit.html", context, status=status)
