"""Submissions: the public list, one's own, and the page that carries all the evidence."""

from collections.abc import Callable

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from evaluator.records.candidate import ENTRY_FILES, Language
from evaluator.records.verdicts import Stage
from evaluator.targets import TARGETS
from leaderboard.models import Submission
from leaderboard.refusals import Refusal
from leaderboard.services.submissions import submission_cancel, submission_rerun
from leaderboard.views.pages.filters import choice
from leaderboard.views.presenters.lists import listed, older_than
from leaderboard.views.presenters.submissions import submission_view, turns_of

PAGE_SIZE = 50
HTMX_STOP_POLLING = 286
SMALL_COUNTS = frozenset(str(count) for count in range(len(Stage) + 1))


def submission_list(request: HttpRequest) -> HttpResponse:
    return _list(request, Submission.objects.for_list(), mine=False)


@login_required
def my_submissions(request: HttpRequest) -> HttpResponse:
    rows = Submission.objects.for_list().filter(entrant__user=request.user)
    return _list(request, rows, mine=True)


def submission(request: HttpRequest, submission_id: str) -> HttpResponse:
    view = submission_view(_find(submission_id))
    context = {
        "view": view,
        "turns": turns_of(view.submission),
        "may_change": _may_change(request, view.submission),
        "section": "submissions",
    }
    return render(request, "leaderboard/submission.html", context)


def progress(request: HttpRequest, submission_id: str) -> HttpResponse:
    """The fragment that an open submission's page fetches; 286 tells htmx to stop asking."""
    seen = request.GET.get("seen", "")
    view = submission_view(_find(submission_id), seen=int(seen) if seen in SMALL_COUNTS else None)
    status = 200 if view.submission.is_open else HTMX_STOP_POLLING
    context = {"view": view, "live": True}
    return render(request, "leaderboard/parts/progress.html", context, status=status)


@login_required
@require_POST
def cancel(request: HttpRequest, submission_id: str) -> HttpResponse:
    return _change(request, submission_id, submission_cancel)


@login_required
@require_POST
def rerun(request: HttpRequest, submission_id: str) -> HttpResponse:
    return _change(request, submission_id, submission_rerun)


def _change(
    request: HttpRequest, submission_id: str, service: Callable[..., object]
) -> HttpResponse:
    """Call the service; a refusal is told on the submission's page, which stays as it was."""
    found = _find(submission_id)
    try:
        service(submission=found, user=request.user)
    except Refusal as refusal:
        messages.error(request, refusal.detail)
    return redirect(found)


def source(request: HttpRequest, submission_id: str, number: int) -> HttpResponse:
    """One source as text; the attachment's name is ours, never the upload's."""
    found = _find(submission_id)
    sources = found.candidate.sources
    if not 1 <= number <= len(sources):
        raise Http404(f"There is no source {number}; this submission has {len(sources)}.")
    suffix = ENTRY_FILES[Language(found.language)].rpartition(".")[2]
    response = HttpResponse(sources[number - 1].content, content_type="text/plain; charset=utf-8")
    name = f"{found.id}_{number}.{suffix}.txt"
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _may_change(request: HttpRequest, found: Submission) -> bool:
    user = request.user
    return user.is_authenticated and (user.is_staff or found.entrant.user_id == user.pk)


def _find(submission_id: str) -> Submission:
    rows = Submission.objects.select_related("entrant", "problem")
    found = rows.filter(pk=submission_id).first()
    if found is None:
        raise Http404(f"There is no submission {submission_id}.")
    return found


def _list(request: HttpRequest, rows: QuerySet[Submission], *, mine: bool) -> HttpResponse:
    state = choice(request, "state", Submission.State.values)
    target = choice(request, "target", list(TARGETS))
    rows = rows.filter(
        **({"state": state} if state else {}), **({"target": target} if target else {})
    )
    page = list(older_than(rows, request.GET.get("before", ""))[: PAGE_SIZE + 1])
    context = {
        "rows": [listed(one) for one in page[:PAGE_SIZE]],
        "older": page[PAGE_SIZE - 1].id if len(page) > PAGE_SIZE else None,
        "states": Submission.State.values,
        "targets": list(TARGETS.values()),
        "chosen_state": state,
        "chosen_target": target,
        "mine": mine,
        "section": "submissions",
    }
    return render(request, "leaderboard/submission_list.html", context)
