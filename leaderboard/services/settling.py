"""How a submission ends: by its valid evaluation where it has one, else by what happened."""

from django.utils import timezone

from leaderboard.models import Evaluation, Submission
from leaderboard.services.model_runs.bells import ring_after


def submission_settle(*, submission: Submission, state: str, message: str) -> None:
    """Inside the caller's transaction. An earlier valid evaluation outlives a failed re-run.

    A model's trajectory that waits for this hears of it after the commit.
    """
    valid = Evaluation.objects.filter(submission=submission, valid=True).first()
    submission.state = Submission.State.DONE if valid else state
    submission.verdict = valid.verdict if valid else None
    submission.message = valid.message if valid else message
    submission.ended_at = timezone.now()
    submission.save(update_fields=["state", "verdict", "message", "ended_at"])
    ring_after(submission)
