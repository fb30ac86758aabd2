"""What an owner may do to a run or a trajectory: pause, resume, cancel. Twice is like once."""

from collections.abc import Mapping
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from pydantic import SecretStr, ValidationError

from evaluator.records.base import Record
from leaderboard.endpoints.endpoint import BadEndpoint, Endpoint
from leaderboard.endpoints.keys import encrypt
from leaderboard.endpoints.parameters import Api
from leaderboard.models import ModelRun, Submission, Trajectory, Turn
from leaderboard.refusals import FieldError, InvalidRun, NotAllowed, RunState
from leaderboard.services.audit import audit_append
from leaderboard.services.model_runs.bells import ring_next
from leaderboard.services.model_runs.closing import turn_drop
from leaderboard.services.model_runs.endings import (
    Ending,
    run_close,
    run_pause,
    run_settle,
    run_unpause,
    trajectory_close,
    trajectory_put,
)
from leaderboard.services.model_runs.requests import Budget, field_errors
from leaderboard.services.submissions import submission_stop


class Resumption(Record):
    """What may change when a paused run goes on: the key, and the budget as a whole."""

    key: SecretStr | None = None
    budget: Budget | None = None


@transaction.atomic
def model_run_pause(*, run: ModelRun, user: User) -> ModelRun:
    """Raises NotAllowed, RunState (it has ended)."""
    run = _own(run, user, "pause")
    if run.state != ModelRun.State.PAUSED:
        run_pause(run, f"Paused by {user.get_username()}.")
        _note(run, user, "paused")
    return run


@transaction.atomic
def model_run_resume(*, run: ModelRun, user: User, body: Mapping[str, Any]) -> ModelRun:
    """Goes on where it was, with a new key or budget where the body has one.

    Raises NotAllowed, RunState, InvalidRun.
    """
    run = _own(run, user, "resume")
    change = _read(run, body)
    if run.state != ModelRun.State.PAUSED:
        if change.key is None and change.budget is None:
            return run
        raise RunState(f"the run is {run.state}; pause it first to give it another key or budget")
    if change.key is not None:
        run.key_ciphertext = encrypt(change.key.get_secret_value())
    if change.budget is not None:
        _set_budget(run, change.budget)
    run.save()
    run_unpause(run)
    _note(run, user, "resumed")
    return run


@transaction.atomic
def model_run_cancel(*, run: ModelRun, user: User | None, reason: str = "") -> ModelRun:
    """Every open trajectory ends, the key is deleted; calls under way are thrown away.

    Raises NotAllowed, RunState (it has ended otherwise).
    """
    if run.state == ModelRun.State.CANCELLED:
        return run
    run = _own(run, user, "cancel") if user else _held(run)
    why = reason or f"Cancelled by {user.get_username() if user else 'the site'}."
    by = user.get_username() if user else "site"
    trajectories = list(run.trajectories.open().select_related("variant"))
    _lock_submissions(trajectories)
    for trajectory in trajectories:
        _stop(run, trajectory, why, by)
    run_close(run, ModelRun.State.CANCELLED, why)
    audit_append(actor=by, action="model-run.cancelled", subject=run.pk)
    return run


@transaction.atomic
def trajectory_hold(*, trajectory: Trajectory, user: User, held: bool) -> Trajectory:
    """Pause (`held`) or resume one trajectory; what it does ends first. Raises as a run does."""
    run = _own(trajectory.run, user, "pause" if held else "resume")
    trajectory = _open_one(run, trajectory)
    trajectory_put(trajectory, held=held)
    ring_next(run)
    return trajectory


@transaction.atomic
def trajectory_cancel(*, trajectory: Trajectory, user: User) -> Trajectory:
    """Ends it; its planned turns still count, so that leaving out bad ones gains nothing."""
    if trajectory.ending == Ending.CANCELLED:
        return trajectory
    run = _own(trajectory.run, user, "cancel")
    trajectory = _open_one(run, trajectory)
    by = user.get_username()
    _stop(run, trajectory, f"Cancelled by {by}.", by)
    run_settle(run)
    audit_append(actor=by, action="trajectory.cancelled", subject=trajectory.pk)
    return trajectory


def may_control(run: ModelRun, user: Any) -> bool:
    return bool(user.is_staff or run.owner_id == user.pk)


def _own(run: ModelRun, user: User, verb: str) -> ModelRun:
    """The run's row, held. Raises NotAllowed, RunState."""
    if not may_control(run, user):
        raise NotAllowed(f"only {run.owner.get_username()} or staff can {verb} this model run")
    held = _held(run)
    if not held.is_open:
        raise RunState(f"the run is {held.state}, which is its end; there is nothing to {verb}")
    return held


def _held(run: ModelRun) -> ModelRun:
    return ModelRun.objects.select_for_update(of=("self",)).get(pk=run.pk)


def _open_one(run: ModelRun, trajectory: Trajectory) -> Trajectory:
    rows = run.trajectories.select_for_update(of=("self",)).select_related("variant")
    held = rows.get(pk=trajectory.pk)
    held.run = run
    if not held.is_open:
        raise RunState(f"the trajectory has ended: {held.ending}")
    return held


def _lock_submissions(trajectories: list[Trajectory]) -> None:
    """All of them before the first entry of the audit's chain: a worker that completes one of them
    holds its row and then waits for the chain, and must not wait for us.
    """
    waiting = Turn.objects.filter(trajectory__in=trajectories, closed_at=None)
    rows = Submission.objects.filter(pk__in=waiting.values("submission")).order_by("pk")
    list(rows.select_for_update(of=("self",)).only("pk"))


def _stop(run: ModelRun, trajectory: Trajectory, why: str, by: str) -> None:
    """Its open turn is dropped; the kernel's evaluation too, unless another turn waits for it."""
    trajectory.run = run
    turn = trajectory.turns.filter(closed_at=None).select_related("submission").first()
    if turn is not None:
        turn_drop(turn, f"{why} The kernel was not evaluated by then.")
        others = Turn.objects.filter(submission=turn.submission, closed_at=None)
        if turn.submission and not others.exists():
            submission_stop(submission=turn.submission, by=by)
    trajectory_close(trajectory, Ending.CANCELLED, why)


def _read(run: ModelRun, body: Mapping[str, Any]) -> Resumption:
    try:
        change = Resumption.model_validate(body)
    except ValidationError as error:
        found = field_errors(error, body, Resumption)
    else:
        found = [*_key_errors(run, change), *_money_errors(run, change)]
    if found:
        raise InvalidRun(found)
    return change


def _key_errors(run: ModelRun, change: Resumption) -> list[FieldError]:
    key = change.key or SecretStr("")
    try:
        Endpoint(api=Api(run.api), base_url=run.base_url, model=run.model, key=key)
    except BadEndpoint as refused:
        return [FieldError(pointer=refused.field, message=str(refused))]
    return []


def _money_errors(run: ModelRun, change: Resumption) -> list[FieldError]:
    if change.budget is None or change.budget.cost_usd is None or run.price_prompt_usd is not None:
        return []
    message = "the run was made without prices, so it cannot keep a limit in US dollars"
    return [FieldError(pointer="budget.cost_usd", message=message)]


def _set_budget(run: ModelRun, budget: Budget) -> None:
    run.limit_turns, run.limit_tokens = budget.turns, budget.tokens
    run.limit_cost_usd, run.limit_seconds = budget.cost_usd, budget.seconds


def _note(run: ModelRun, user: User, verb: str) -> None:
    audit_append(actor=user.get_username(), action=f"model-run.{verb}", subject=run.pk)
