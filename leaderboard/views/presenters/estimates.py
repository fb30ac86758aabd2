"""What a run will take before it is sent: calls of the model, and time on a GPU."""

from dataclasses import dataclass

from leaderboard.models import Attempt
from leaderboard.services.model_runs.requests import CheckedRequest

SAMPLE = 50
ASSUMED_SECONDS = 40.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """At most; trajectories that meet their target early take less.

    seconds_each  of one kernel on the target, the mean of `sampled` recent ones; assumed where
                  nothing has run there yet
    """

    runs: int
    calls: int
    target: str
    seconds_each: float
    sampled: int

    @property
    def minutes(self) -> float:
        return self.calls * self.seconds_each / 60


def estimate(checked: CheckedRequest) -> Estimate:
    rows = Attempt.objects.filter(
        lane="gpu",
        target=checked.target.slug,
        state=Attempt.State.FINISHED,
        claimed_at__isnull=False,
        ended_at__isnull=False,
    ).order_by("-created_at")
    spans = [
        (ended - claimed).total_seconds()
        for claimed, ended in rows.values_list("claimed_at", "ended_at")[:SAMPLE]
    ]
    return Estimate(
        runs=len(checked.plans),
        calls=checked.call_count,
        target=checked.target.slug,
        seconds_each=sum(spans) / len(spans) if spans else ASSUMED_SECONDS,
        sampled=len(spans),
    )
