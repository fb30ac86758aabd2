"""The site's own Celery tasks: duties on the queue `io`, calls of models on the queue `models`."""

from celery import shared_task

from evaluator.broker import ADVANCE_TASK
from leaderboard.services import duties
from leaderboard.services.model_runs.advancing import trajectory_advance


@shared_task(name="leaderboard.reconcile")
def reconcile() -> int:
    return duties.reconcile()


@shared_task(name="leaderboard.reap")
def reap() -> int:
    return duties.reap()


@shared_task(name=ADVANCE_TASK)
def advance_trajectory(trajectory_id: str) -> None:
    trajectory_advance(trajectory_id=trajectory_id)
