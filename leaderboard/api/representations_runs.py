"""What the API shows of model runs; a run's key is nowhere, its address only for its owner."""

from dataclasses import asdict
from typing import Any

from django.db.models import Prefetch
from django.urls import reverse
from django.utils import timezone
from rest_framework.request import Request

from leaderboard.api.representations import entrant_json
from leaderboard.models import ModelRun, RunVariant, Trajectory, Turn
from leaderboard.services.model_runs.budgets import usage_of
from leaderboard.services.model_runs.control import may_control
from leaderboard.services.model_runs.exports import turn_record, turns_of
from leaderboard.services.model_runs.outcomes import run_metrics, state_of, turn_counts


def run_brief(run: ModelRun, request: Request) -> dict[str, Any]:
    """One row of a list."""
    absolute = request.build_absolute_uri
    return {
        "id": str(run.pk),
        "batch": str(run.batch),
        "url": absolute(reverse("api:model-run", args=[run.pk])),
        "html_url": absolute(run.get_absolute_url()),
        "name": run.name,
        "model": run.model,
        "api": run.api,
        "entrant": entrant_json(run.entrant),
        "owner": run.owner.get_username(),
        "problem": run.problem.name,
        "target": run.target,
        "language": run.language,
        "binding": run.binding,
        "state": run.state,
        "reason": run.reason,
        "created_at": run.created_at.isoformat(),
        "started_at": _moment(run.started_at),
        "ended_at": _moment(run.ended_at),
    }


def run_json(run: ModelRun, request: Request) -> dict[str, Any]:
    """Plan, use, metrics and the grid of verdict tiles."""
    variants = list(run.variants.defer("packed_messages"))
    shows_address = may_control(run, request.user)
    return {
        **run_brief(run, request),
        "endpoint": {
            "base_url": run.base_url if shows_address else None,
            "parameters": run.parameters,
            "key": "deleted" if run.key_deleted_at else ("set" if run.key_ciphertext else "none"),
        },
        "pack": {
            "name": run.pack_name or None,
            "version": run.pack_version or None,
            "digest": run.pack_digest or None,
            "level": run.level or None,
            "guidance": run.guidance,
        },
        "plan": _plan(run, variants),
        "budget": {
            "turns": run.limit_turns,
            "tokens": run.limit_tokens,
            "cost_usd": run.limit_cost_usd,
            "seconds": run.limit_seconds,
        },
        "prices": {
            "prompt_usd": run.price_prompt_usd,
            "completion_usd": run.price_completion_usd,
        },
        "used": asdict(usage_of(run, timezone.now())),
        "turn_counts": turn_counts(run),
        "metrics": run_metrics(run),
        "trajectories": [_grid_row(row, request) for row in _grid(run)],
        "digest": run.digest,
    }


def _plan(run: ModelRun, variants: list[RunVariant]) -> dict[str, Any]:
    return {
        "variants": [
            {"slug": one.slug, "title": one.title, "prompt_digest": one.digest} for one in variants
        ],
        "trajectories": run.trajectory_count,
        "turns": run.turn_count,
        "calls_at_most": len(variants) * run.trajectory_count * run.turn_count,
        "target_speedup": run.target_speedup,
        "policy": run.policy,
        "max_parallel": run.max_parallel,
    }


def _grid(run: ModelRun) -> Any:
    turns = Prefetch("turns", Turn.objects.for_grid().order_by("pk"))
    rows = run.trajectories.select_related("variant").defer("variant__packed_messages")
    return rows.prefetch_related(turns).in_order()


def _grid_row(trajectory: Trajectory, request: Request) -> dict[str, Any]:
    turns = [turn_json(turn, request) for turn in trajectory.turns.all()]
    return {**trajectory_brief(trajectory, request), "turns": turns}


def trajectory_brief(trajectory: Trajectory, request: Request) -> dict[str, Any]:
    absolute = request.build_absolute_uri
    return {
        "id": str(trajectory.pk),
        "url": absolute(reverse("api:trajectory", args=[trajectory.pk])),
        "html_url": absolute(trajectory.get_absolute_url()),
        "variant": trajectory.variant.slug,
        "number": trajectory.number,
        "state": trajectory.state,
        "held": trajectory.held,
        "ending": trajectory.ending or None,
        "reason": trajectory.reason,
        "next_at": _moment(trajectory.next_at),
        "started_at": _moment(trajectory.started_at),
        "ended_at": _moment(trajectory.ended_at),
    }


def trajectory_json(trajectory: Trajectory, request: Request) -> dict[str, Any]:
    """With the base prompt and every turn, the bytes sent left to the turn's own address."""
    return {
        **trajectory_brief(trajectory, request),
        "run": run_brief(trajectory.run, request),
        "base_messages": trajectory.variant.messages,
        "export_url": request.build_absolute_uri(
            reverse("api:trajectory-export", args=[trajectory.pk])
        ),
        "turns": [turn_json(turn, request, told=True) for turn in turns_of(trajectory)],
    }


def turn_json(
    turn: Turn, request: Request, *, told: bool = False, whole: bool = False
) -> dict[str, Any]:
    """A tile; `told`: with answer, reasoning and feedback; `whole`: with request and reply too."""
    absolute = request.build_absolute_uri
    value: dict[str, Any] = {
        "id": turn.pk,
        "url": absolute(reverse("api:turn", args=[turn.pk])),
        "html_url": absolute(turn.get_absolute_url()),
        "number": turn.number,
        "repeat": turn.repeat,
        "state": state_of(turn),
        "verdict": turn.verdict or None,
        "speedup": turn.speedup,
        "instruction_status": turn.instruction_status or None,
        "excluded": turn.excluded,
        "excluded_reason": turn.excluded_reason,
        "submission": _submission_url(turn, request),
        "called_at": _moment(turn.called_at),
        "closed_at": _moment(turn.closed_at),
        "digest": turn.digest or None,
    }
    if told or whole:
        record = turn_record(turn)
        hidden = () if whole else ("request", "reply")
        value.update({name: part for name, part in record.items() if name not in hidden})
        value.update({"feedback": turn.feedback, "submission": _submission_url(turn, request)})
    return value


def _submission_url(turn: Turn, request: Request) -> str | None:
    if turn.submission_id is None:
        return None
    return request.build_absolute_uri(reverse("api:submission", args=[turn.submission_id]))


def _moment(moment: Any) -> str | None:
    return moment.isoformat() if moment else None
