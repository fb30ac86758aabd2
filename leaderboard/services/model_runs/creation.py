"""A checked request becomes runs: one a problem, with prompts kept to the letter."""

import uuid
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from evaluator import HARNESS_VERSION
from evaluator.agent.messages import canonical_bytes, digest
from evaluator.agent.prompt import base_messages
from leaderboard.endpoints.keys import encrypt
from leaderboard.models import ModelRun, RunVariant, Trajectory
from leaderboard.refusals import KeyReused, TooManyRuns
from leaderboard.services.audit import audit_append
from leaderboard.services.entrants import model_entrant_of
from leaderboard.services.model_runs.bells import ring_next
from leaderboard.services.model_runs.requests import (
    CheckedRequest,
    ProblemPlan,
    body_digest,
    check_request,
)
from packs.pack import Level


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedRuns:
    """`created` is False where an Idempotency-Key named runs that were already there."""

    runs: tuple[ModelRun, ...]
    created: bool


def model_runs_create(
    *, owner: User, body: Mapping[str, Any], idempotency_key: str | None = None
) -> CreatedRuns:
    """One queued run for each problem of the body; or those that the same key made before.

    Raises InvalidRun, KeyReused, TooManyRuns.
    """
    seen = body_digest(body)
    if earlier := _runs_of_key(owner, idempotency_key, seen):
        return CreatedRuns(runs=earlier, created=False)
    checked = check_request(body)
    with transaction.atomic():
        User.objects.select_for_update().get(pk=owner.pk)
        if earlier := _runs_of_key(owner, idempotency_key, seen):
            return CreatedRuns(runs=earlier, created=False)
        _refuse_too_many(owner, len(checked.plans))
        kept = {"idempotency_key": idempotency_key, "body_digest": seen if idempotency_key else ""}
        batch = uuid.uuid4()
        runs = tuple(_create(owner, checked, plan, batch, kept) for plan in checked.plans)
        for run in runs:  # last of all: whoever writes the audit's chain must wait for nobody
            _note(owner, run)
    return CreatedRuns(runs=runs, created=True)


def _runs_of_key(owner: User, key: str | None, seen: str) -> tuple[ModelRun, ...]:
    if key is None:
        return ()
    earlier = tuple(ModelRun.objects.filter(owner=owner, idempotency_key=key).order_by("name"))
    if earlier and earlier[0].body_digest != seen:
        raise KeyReused(
            f"Idempotency-Key {key[:60]!r} was used for model run {earlier[0].pk} with another "
            "body; use a new key for a new run"
        )
    return earlier


def _refuse_too_many(owner: User, asked: int) -> None:
    seen, limit = ModelRun.objects.open().filter(owner=owner).count(), settings.PTXBOARD_RUN_LIMIT
    if seen + asked > limit:
        raise TooManyRuns(seen=seen, asked=asked, limit=limit)


def _create(
    owner: User, checked: CheckedRequest, plan: ProblemPlan, batch: uuid.UUID, kept: dict[str, Any]
) -> ModelRun:
    request, now = checked.request, timezone.now()
    run = ModelRun.objects.create(
        batch=batch,
        owner=owner,
        entrant=model_entrant_of(owner=owner, model=request.model.strip()),
        name=(request.name.strip() or f"{request.model.strip()} on {plan.problem.name}")[:100],
        problem=plan.problem,
        created_at=now,
        harness_version=HARNESS_VERSION,
        **_endpoint_columns(checked),
        **_plan_columns(checked),
        **kept,
    )
    for position in range(len(plan.variants)):
        _add_variant(run, checked, plan, position)
    ModelRun.objects.filter(pk=run.pk).update(digest=run.settings_digest)
    run.refresh_from_db()
    ring_next(run)
    return run


def _note(owner: User, run: ModelRun) -> None:
    audit_append(
        actor=owner.get_username(),
        action="model-run.created",
        subject=run.pk,
        detail={"model": run.model, "problem": run.problem.name, "target": run.target},
    )


def _endpoint_columns(checked: CheckedRequest) -> dict[str, Any]:
    request = checked.request
    key = request.key.get_secret_value()
    return {
        "model": request.model.strip(),
        "api": request.api.value,
        "base_url": request.base_url.strip(),
        "key_ciphertext": encrypt(key) if key else "",
        "parameters": request.parameters.model_dump(mode="json", exclude_defaults=True),
        "max_parallel": request.max_parallel,
        "limit_turns": request.budget.turns,
        "limit_tokens": request.budget.tokens,
        "limit_cost_usd": request.budget.cost_usd,
        "limit_seconds": request.budget.seconds,
        "price_prompt_usd": request.prices and request.prices.prompt_usd,
        "price_completion_usd": request.prices and request.prices.completion_usd,
    }


def _plan_columns(checked: CheckedRequest) -> dict[str, Any]:
    request, pack = checked.request, checked.pack
    return {
        "target": checked.target.slug,
        "language": checked.language,
        "binding": checked.binding,
        "pack_name": pack.name if pack else "",
        "pack_version": pack.version if pack else "",
        "pack_digest": pack.digest if pack else "",
        "level": checked.level.value if checked.level else "",
        "guidance": request.guidance,
        "trajectory_count": request.trajectories,
        "turn_count": request.turns,
        "target_speedup": request.target_speedup,
        "policy": request.policy.value,
    }


def _add_variant(run: ModelRun, checked: CheckedRequest, plan: ProblemPlan, position: int) -> None:
    """The variant's base prompt as it is today, and its trajectories, waiting."""
    variant = plan.variants[position]
    messages = base_messages(
        problem=plan.problem.record,
        target=checked.target,
        language=checked.language,
        binding=checked.binding,
        pack=checked.pack,
        level=checked.level or Level.SCHEDULE,
        variant=variant,
        guidance=run.guidance,
        target_speedup=run.target_speedup,
        turns=run.turn_count,
    )
    row = RunVariant.objects.create(
        run=run,
        position=position,
        slug=variant.slug,
        title=variant.title,
        schedules=list(variant.schedules),
        packed_messages=zlib.compress(canonical_bytes(messages)),
        digest=digest(messages),
    )
    numbers = range(1, run.trajectory_count + 1)
    Trajectory.objects.bulk_create(
        Trajectory(run=run, variant=row, number=number, created_at=run.created_at)
        for number in numbers
    )
