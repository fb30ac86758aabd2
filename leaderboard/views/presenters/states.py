"""The badge of a submission: its verdict when there is one, else where the work is."""

from leaderboard.models import Submission
from leaderboard.views.presenters.words import INFRA_ERROR, Badge, verdict_badge

QUEUED = Badge(word="Queued", icon="clock", tone="idle", title="Waiting for a worker.")
RUNNING = Badge(word="Running", icon="spin", tone="live", title="A worker has claimed it.")
CANCELLED = Badge(word="Cancelled", icon="dash", tone="idle", title="Cancelled before a verdict.")
WITHDRAWN = Badge(
    word="Withdrawn",
    icon="ban",
    tone="unsure",
    title="The evaluation was taken back; the reason stands on the page.",
)

_BADGES = {
    Submission.State.QUEUED: QUEUED,
    Submission.State.RUNNING: RUNNING,
    Submission.State.FAULTED: INFRA_ERROR,
    Submission.State.CANCELLED: CANCELLED,
}


def submission_badge(submission: Submission) -> Badge:
    if submission.is_withdrawn:
        return WITHDRAWN
    if submission.state == Submission.State.DONE and submission.verdict:
        return verdict_badge(submission.verdict)
    return _BADGES[Submission.State(submission.state)]
