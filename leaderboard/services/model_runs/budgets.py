"""What a run has used, and which of its limits that meets."""

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q, Sum

from leaderboard.models import ModelRun, Trajectory, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """Of all stored turns: those lost to infrastructure cost tokens and money as well.

    turns            turns that count; excluded ones and their repeats are not charged
    unmetered_turns  turns whose endpoint told no tokens
    cost_usd         None without prices, or where a turn told no tokens
    """

    turns: int
    excluded_turns: int
    unmetered_turns: int
    prompt_tokens: int
    completion_tokens: int
    reasoning_tokens: int
    cached_tokens: int
    cost_usd: float | None
    seconds: float

    @property
    def tokens(self) -> int:
        return self.prompt_tokens + self.completion_tokens


def usage_of(run: ModelRun, now: datetime) -> Usage:
    """One query."""
    unmetered = Q(prompt_tokens=None) | Q(completion_tokens=None)
    seen = Turn.objects.filter(trajectory__run=run).aggregate(
        counted=Count("pk", filter=Q(excluded=False)),
        lost=Count("pk", filter=Q(excluded=True)),
        unmetered=Count("pk", filter=unmetered),
        prompt=Sum("prompt_tokens", default=0),
        completion=Sum("completion_tokens", default=0),
        reasoning=Sum("reasoning_tokens", default=0),
        cached=Sum("cached_tokens", default=0),
        cost=Sum("cost_usd", default=0.0),
    )
    return Usage(
        turns=seen["counted"],
        excluded_turns=seen["lost"],
        unmetered_turns=seen["unmetered"],
        prompt_tokens=seen["prompt"],
        completion_tokens=seen["completion"],
        reasoning_tokens=seen["reasoning"],
        cached_tokens=seen["cached"],
        cost_usd=None if run.price_prompt_usd is None or seen["unmetered"] else seen["cost"],
        seconds=run.seconds_used(now),
    )


def cost_usd(
    run: ModelRun, prompt_tokens: int | None, completion_tokens: int | None
) -> float | None:
    """By the owner's prices; None where they or the tokens are unknown. Cached tokens cost full."""
    prompt_usd, completion_usd = run.price_prompt_usd, run.price_completion_usd
    if None in (prompt_usd, completion_usd, prompt_tokens, completion_tokens):
        return None
    return (prompt_tokens * prompt_usd + completion_tokens * completion_usd) / 1e6


def spent(run: ModelRun, now: datetime) -> str:
    """Which limit is met, in words; '' while another call may be made. Calls under way count."""
    seen = usage_of(run, now)
    calling = run.trajectories.filter(state=Trajectory.State.CALLING).count()
    cost = seen.cost_usd or 0.0
    used = (
        (run.limit_turns, seen.turns + calling, "turns"),
        (run.limit_tokens, seen.tokens, "tokens"),
        (run.limit_cost_usd, cost, "US dollars"),
        (run.limit_seconds, seen.seconds, "seconds"),
    )
    for limit, amount, unit in used:
        if limit is not None and amount >= limit:
            return f"the run's budget is used up: {amount:g} of {limit:g} {unit}"
    return ""


def unmetered(run: ModelRun, now: datetime) -> str:
    """Why a limit in tokens or money cannot be kept, in words; '' where it can."""
    if run.limit_tokens is None and run.limit_cost_usd is None:
        return ""
    if not usage_of(run, now).unmetered_turns:
        return ""
    return (
        "the endpoint tells no token counts, so the run's limit in tokens or dollars cannot be "
        "kept; resume with a budget of turns or seconds instead"
    )
