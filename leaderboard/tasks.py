"""The site's own Celery tasks, on the queue `io`."""

from celery import shared_task

from leaderboard.services import duties


@shared_task(name="leaderboard.reconcile")
def reconcile() -> int:
    return duties.reconcile()


@shared_task(name="leaderboard.reap")
def reap() -> int:
    return duties.reap()
