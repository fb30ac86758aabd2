"""Trajectories and turns: one conversation, and one call of it with all that it left behind."""

from collections.abc import Callable

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_POST

from leaderboard.models import Trajectory, Turn
from leaderboard.refusals import Refusal
from leaderboard.services.model_runs.control import (
    may_control,
    trajectory_cancel,
    trajectory_hold,
)
from leaderboard.views.presenters.prompts import conversation, parameters_of
from leaderboard.views.presenters.runs import grid_row, trajectory_badge
from leaderboard.views.presenters.turns import prompt_messages, sums, turn_row, turn_view

TEXT = "text/plain; charset=utf-8"
JSON = "application/json"
PARTS = ("request", "reply", "answer", "reasoning", "code", "feedback")


def trajectory(request: HttpRequest, trajectory_id: str) -> HttpResponse:
    found = _trajectory(trajectory_id)
    turns = list(Turn.objects.filter(trajectory=found).for_grid())
    context = {
        "trajectory": found,
        "run": found.run,
        "badge": trajectory_badge(found),
        "rows": [turn_row(one) for one in turns],
        "grid": grid_row(found, turns, found.run),
        "sums": sums(turns),
        "may_change": may_control(found.run, request.user),
        "section": "model-runs",
    }
    return render(request, "leaderboard/trajectory.html", context)


@login_required
@require_POST
def pause(request: HttpRequest, trajectory_id: str) -> HttpResponse:
    return _change(request, trajectory_id, trajectory_hold, held=True)


@login_required
@require_POST
def resume(request: HttpRequest, trajectory_id: str) -> HttpResponse:
    return _change(request, trajectory_id, trajectory_hold, held=False)


@login_required
@require_POST
def cancel(request: HttpRequest, trajectory_id: str) -> HttpResponse:
    return _change(request, trajectory_id, trajectory_cancel)


def _change(
    request: HttpRequest, trajectory_id: str, service: Callable[..., object], **more: object
) -> HttpResponse:
    found = _trajectory(trajectory_id)
    try:
        service(trajectory=found, user=request.user, **more)
    except Refusal as refusal:
        messages.error(request, refusal.detail)
    return redirect(found)


def turn(request: HttpRequest, turn_id: int) -> HttpResponse:
    found = _turn(turn_id)
    view, asked = turn_view(found), request.GET.get("digest", "").strip()[:80]
    context = {
        "view": view,
        "turn": found,
        "asked_digest": asked,
        "known_digest": view.named_digest(asked),
        "part_names": PARTS,
        "site": request.build_absolute_uri("/").rstrip("/"),
        "section": "model-runs",
    }
    return render(request, "leaderboard/turn.html", context)


def prompt(request: HttpRequest, turn_id: int) -> HttpResponse:
    """The whole conversation as it was sent, message by message."""
    found = _turn(turn_id)
    context = {
        "turn": found,
        "messages_sent": prompt_messages(conversation(found.request_bytes)),
        "parameters": parameters_of(found.request_bytes),
        "section": "model-runs",
    }
    return render(request, "leaderboard/turn_prompt.html", context)


def part(request: HttpRequest, turn_id: int, name: str) -> HttpResponse:
    """One part of a turn to the last byte; browsers take it for text, whatever it holds."""
    found = _turn(turn_id)
    parts: dict[str, Callable[[], tuple[str | bytes, str]]] = {
        "request": lambda: (found.request_bytes, JSON),
        "reply": lambda: (found.reply_text, TEXT),
        "answer": lambda: (found.answer, TEXT),
        "reasoning": lambda: (found.reasoning, TEXT),
        "feedback": lambda: (found.feedback, TEXT),
        "code": lambda: (found.source or "", TEXT),
    }
    if name not in parts:
        raise Http404(f"A turn has no part {name[:60]!r}. It has: {', '.join(parts)}.")
    data, kind = parts[name]()
    response = HttpResponse(data, content_type=kind)
    suffix = "json" if kind == JSON else "txt"
    response["Content-Disposition"] = f'inline; filename="turn_{found.pk}_{name}.{suffix}"'
    response["X-Content-Type-Options"] = "nosniff"
    return response


def _trajectory(trajectory_id: str) -> Trajectory:
    rows = Trajectory.objects.select_related("run__problem", "run__entrant", "variant")
    found = rows.filter(pk=trajectory_id).defer("variant__packed_messages").first()
    if found is None:
        raise Http404(f"There is no trajectory {trajectory_id}.")
    return found


def _turn(turn_id: int) -> Turn:
    rows = Turn.objects.select_related(
        "trajectory__run__problem",
        "trajectory__run__entrant",
        "trajectory__variant",
        "parent",
        "submission__entrant",
        "submission__problem",
    ).defer("trajectory__variant__packed_messages", "trajectory__run__key_ciphertext")
    found = rows.filter(pk=turn_id).first() if turn_id < 1 << 63 else None
    if found is None:
        raise Http404(f"There is no turn {turn_id}.")
    return found
