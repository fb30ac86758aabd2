"""What a worker's token opens: the lanes and targets that it was made for, nothing else."""

from evaluator.records.verdicts import Lane
from evaluator.records.worker_api import WorkerHello
from leaderboard.models import ApiToken, Attempt
from leaderboard.refusals import OutOfScope
from leaderboard.services.attempts import attempt_find


def permit_offer(*, token: ApiToken, hello: WorkerHello) -> None:
    """A worker must not offer more than its token serves. Raises OutOfScope."""
    for lane in hello.lanes:
        targets = hello.targets if lane is Lane.GPU else hello.targets[:1]
        for target in targets:
            _permit(token, lane.value, target)


def permit_attempt(*, token: ApiToken, attempt_id: str) -> Attempt:
    """The attempt, where the token serves it. Raises AttemptUnknown, OutOfScope."""
    attempt = attempt_find(attempt_id)
    _permit(token, attempt.lane, attempt.target)
    return attempt


def _permit(token: ApiToken, lane: str, target: str) -> None:
    if token.serves(lane=lane, target=target):
        return
    asked = "build" if lane == Lane.BUILD else f"run on {target}"
    raise OutOfScope(
        f"the token {token.prefix}... may {token.scope_words or 'do nothing'}; "
        f"asked was to {asked}. The operator makes another with manage.py create_token",
        extra={
            "allowed": {"lanes": token.lanes, "targets": token.targets},
            "asked": {"lane": lane, "target": target},
        },
    )
