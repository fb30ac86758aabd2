"""Model runs: the list, and the page that shows every trajectory and turn of one."""

import csv
from collections.abc import Callable

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST

from evaluator.targets import TARGETS
from leaderboard.models import ModelRun, Turn
from leaderboard.refusals import Refusal
from leaderboard.services.model_runs.budgets import usage_of
from leaderboard.services.model_runs.control import (
    may_control,
    model_run_cancel,
    model_run_pause,
    model_run_resume,
)
from leaderboard.services.model_runs.outcomes import outcomes_of
from leaderboard.views.pages.filters import choice
from leaderboard.views.pages.submissions import HTMX_STOP_POLLING
from leaderboard.views.presenters.lists import older_than
from leaderboard.views.presenters.runs import RunView, listed_run, run_rows
from leaderboard.views.presenters.tables import TURN_COLUMNS, spreadsheet_safe, turn_cells

PAGE_SIZE = 50


def model_run_list(request: HttpRequest) -> HttpResponse:
    return _list(request, ModelRun.objects.for_list(), mine=False)


@login_required
def my_model_runs(request: HttpRequest) -> HttpResponse:
    return _list(request, ModelRun.objects.for_list().filter(owner=request.user), mine=True)


def model_run(request: HttpRequest, run_id: str) -> HttpResponse:
    view = _view(run_id)
    context = {"view": view, "run": view.run, "may_change": may_control(view.run, request.user)}
    context["section"] = "model-runs"
    return render(request, "leaderboard/model_run.html", context)


def progress(request: HttpRequest, run_id: str) -> HttpResponse:
    """The part of a run's page that changes; 286 tells htmx to stop asking."""
    view = _view(run_id)
    status = 200 if view.is_live else HTMX_STOP_POLLING
    context = {"view": view, "run": view.run, "live": True}
    return render(request, "leaderboard/parts/model_run_progress.html", context, status=status)


def turns_csv(request: HttpRequest, run_id: str) -> HttpResponse:
    """One row a turn with full precision, excluded ones among them and marked."""
    run = _find(run_id)
    turns = Turn.objects.filter(trajectory__run=run).for_grid()
    turns = turns.select_related("trajectory__variant").defer(
        "trajectory__variant__packed_messages"
    )
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="model_run_{run.pk}.csv"'
    writer = csv.writer(response)
    writer.writerow(TURN_COLUMNS)
    ordered = turns.order_by("trajectory__variant__position", "trajectory__number", "number", "pk")
    writer.writerows([spreadsheet_safe(cell) for cell in turn_cells(one)] for one in ordered)
    return response


@login_required
@require_POST
def pause(request: HttpRequest, run_id: str) -> HttpResponse:
    return _change(request, run_id, model_run_pause)


@login_required
@require_POST
@sensitive_post_parameters("key")
def resume(request: HttpRequest, run_id: str) -> HttpResponse:
    """With another key where one was typed."""
    key = request.POST.get("key", "").strip()
    return _change(request, run_id, model_run_resume, body={"key": key} if key else {})


@login_required
@require_POST
def cancel(request: HttpRequest, run_id: str) -> HttpResponse:
    return _change(request, run_id, model_run_cancel)


def _change(
    request: HttpRequest, run_id: str, service: Callable[..., object], **more: object
) -> HttpResponse:
    """Call the service; a refusal is told on the run's page, which stays as it was."""
    run = _find(run_id)
    try:
        service(run=run, user=request.user, **more)
    except Refusal as refusal:
        messages.error(request, refusal.detail)
    return redirect(run)


def _view(run_id: str) -> RunView:
    """A fixed number of queries, however many turns there are."""
    run = _find(run_id)
    turns_of: dict[object, list[Turn]] = {}
    for turn in Turn.objects.filter(trajectory__run=run).for_grid():
        turns_of.setdefault(turn.trajectory_id, []).append(turn)
    trajectories = list(run.trajectories.in_order())
    variants = list(run.variants.defer("packed_messages"))
    return RunView(
        run=run,
        variants=variants,
        trajectories=trajectories,
        turns_of=turns_of,
        usage=usage_of(run, timezone.now()),
        outcomes=outcomes_of(run),
    )


def _find(run_id: str) -> ModelRun:
    rows = ModelRun.objects.select_related("entrant", "owner", "problem").defer("key_ciphertext")
    found = rows.filter(pk=run_id).first()
    if found is None:
        raise Http404(f"There is no model run {run_id}.")
    return found


def _list(request: HttpRequest, rows: QuerySet[ModelRun], *, mine: bool) -> HttpResponse:
    state = choice(request, "state", ModelRun.State.values)
    target = choice(request, "target", list(TARGETS))
    rows = rows.filter(
        **({"state": state} if state else {}), **({"target": target} if target else {})
    )
    page = list(older_than(run_rows(rows), request.GET.get("before", ""))[: PAGE_SIZE + 1])
    context = {
        "rows": [listed_run(one) for one in page[:PAGE_SIZE]],
        "older": page[PAGE_SIZE - 1].id if len(page) > PAGE_SIZE else None,
        "states": ModelRun.State.values,
        "targets": list(TARGETS.values()),
        "chosen_state": state,
        "chosen_target": target,
        "mine": mine,
        "section": "model-runs",
    }
    return render(request, "leaderboard/model_run_list.html", context)
