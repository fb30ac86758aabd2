"""The end of a call: a stored turn and the evaluation of its kernel, or why there is none."""

import logging
import random
import zlib
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import transaction
from django.utils import timezone

from evaluator.agent.context import Exchange, assemble
from evaluator.agent.extraction import Extraction, ExtractionState, extract
from evaluator.agent.messages import Message, canonical_bytes, well_formed
from evaluator.records.base import sha256_hex
from evaluator.records.candidate import ENTRY_FILES, Candidate, Language
from leaderboard.endpoints.errors import EndpointError, ErrorKind
from leaderboard.endpoints.replies import Reply
from leaderboard.models import Submission, Trajectory, Turn
from leaderboard.services.drafts import CheckedDraft
from leaderboard.services.model_runs.bells import ring_after, ring_next
from leaderboard.services.model_runs.budgets import cost_usd
from leaderboard.services.model_runs.claiming import Claim, lock_trajectory, still_holds
from leaderboard.services.model_runs.closing import turn_settle
from leaderboard.services.model_runs.endings import (
    NO_CALL,
    Ending,
    count_failure,
    run_pause,
    trajectory_end,
    trajectory_put,
)
from leaderboard.services.source_text import storable
from leaderboard.services.submissions import submission_of_turn

log = logging.getLogger(__name__)

MOST_FAILURES = 5
BACKOFF_SECONDS = (5, 15, 60, 180)
RESUME = "Resume the run to go on."
MEND_AND_RESUME = (
    "Resume the run once that is mended, with another key if need be; another address or model "
    "needs a new run."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """What is about to be asked, and when."""

    claim: Claim
    messages: tuple[Message, ...]
    called_at: datetime


def call_of(claim: Claim) -> Call:
    """The messages of the claimed turn: the run's own base prompt, then its turns by its policy."""
    trajectory = claim.trajectory
    base = [Message(**message) for message in trajectory.variant.messages]
    turns = trajectory.turns.counted().exclude(closed_at=None).order_by("number")
    told = [Exchange(answer=turn.answer, feedback=turn.feedback) for turn in turns]
    messages = assemble(base, told, trajectory.run.policy)
    return Call(claim=claim, messages=messages, called_at=timezone.now())


@transaction.atomic
def turn_store(call: Call, reply: Reply) -> Turn | None:
    """The turn, its kernel's submission with job and doorbell, in one transaction.

    None where the call is no longer wanted: it was cancelled, or another took its place.
    """
    trajectory = lock_trajectory(str(call.claim.trajectory.pk))
    if trajectory is None or not still_holds(trajectory, call.claim):
        log.info("trajectory %s: a reply came too late and is dropped", call.claim.trajectory.pk)
        return None
    run = trajectory.run
    extraction = extract(
        reply.text,
        finish_reason=reply.finish_reason,
        reasoning=reply.reasoning,
        language=run.language,
    )
    return _store(call, trajectory, reply, extraction)


def _store(call: Call, trajectory: Trajectory, reply: Reply, extraction: Extraction) -> Turn:
    submission, is_shared = _submission(call, trajectory, extraction)
    turn = _turn(call, trajectory, reply, extraction)
    turn.submission, turn.is_shared = submission, is_shared
    turn.previous_digest = _last_digest(trajectory)
    turn.call_digest = turn.computed_call_digest
    turn.save(force_insert=True)
    evaluating = Trajectory.State.EVALUATING
    trajectory_put(trajectory, state=evaluating, failures=0, **NO_CALL)
    if submission is None:
        turn_settle(trajectory, turn, extraction)
    elif not submission.is_open:
        ring_after(submission)
    ring_next(trajectory.run)
    return turn


def _submission(
    call: Call, trajectory: Trajectory, extraction: Extraction
) -> tuple[Submission | None, bool]:
    """(the kernel's submission, whether this model handed it in before)."""
    if extraction.source is None:
        return None, False
    run = trajectory.run
    entry_file = ENTRY_FILES[Language(run.language)]
    candidate = Candidate.model_validate(
        {
            "problem": run.problem.name,
            "target": run.target,
            "language": run.language,
            "binding": run.binding,
            "sources": [{"path": entry_file, "content": extraction.source}],
            "entry_file": entry_file,
        }
    )
    name = f"{run.model[:50]} {trajectory.label} turn {call.claim.number}"[:100]
    description = f"Turn {call.claim.number} of trajectory {trajectory.pk}, model run {run.pk}."
    checked = CheckedDraft(
        problem=run.problem, candidate=candidate, name=name, description=description
    )
    made = submission_of_turn(entrant=run.entrant, checked=checked)
    return made.submission, not made.created


def _turn(call: Call, trajectory: Trajectory, reply: Reply, extraction: Extraction) -> Turn:
    usage, sent = reply.usage, reply.sent.encode() or canonical_bytes(call.messages)
    return Turn(
        trajectory=trajectory,
        number=call.claim.number,
        repeat=call.claim.repeat,
        parent=trajectory.turns.counted().order_by("-number").first(),
        packed_request=zlib.compress(sent),
        request_digest=sha256_hex(sent),
        request_byte_count=len(sent),
        packed_reply=zlib.compress(reply.raw.encode()),
        reported_model=_text(reply.model or "")[:200],
        request_id=_text(reply.request_id or "")[:200],
        answer=_text(reply.text),
        reasoning=_text(reply.reasoning),
        finish_reason=_text(reply.finish_reason or "")[:60],
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        reasoning_tokens=usage.reasoning_tokens,
        cached_tokens=usage.cached_tokens,
        cost_usd=cost_usd(trajectory.run, usage.prompt_tokens, usage.completion_tokens),
        extraction_state=extraction.state.value,
        extraction_message=_text(extraction.message),
        called_at=call.called_at,
        replied_at=timezone.now(),
    )


def _text(text: str) -> str:
    """What both databases keep as it is: no NUL, no lone surrogate."""
    return well_formed(storable(text))


def _last_digest(trajectory: Trajectory) -> str:
    last = trajectory.turns.order_by("-pk").first()
    return last.digest if last else trajectory.run.digest


@transaction.atomic
def call_failed(call: Call, error: EndpointError) -> None:
    """No turn came: wait and try again, end the trajectory, or pause the run; nothing is charged.

    An answer that was too large to take is the model's own doing: it is a turn without code. A
    request that is refused although others of the run were taken would be refused again for ever:
    its trajectory ends, and the run goes on.
    """
    trajectory = lock_trajectory(str(call.claim.trajectory.pk))
    if trajectory is None or not still_holds(trajectory, call.claim):
        return
    if error.kind is ErrorKind.CONTEXT_EXCEEDED:
        trajectory_end(trajectory, Ending.OUT_OF_CONTEXT, error.message)
    elif error.kind is ErrorKind.TOO_LARGE:
        extraction = Extraction(state=ExtractionState.TOO_LARGE, message=error.message)
        _store(call, trajectory, _unread(error), extraction)
    elif error.kind is ErrorKind.BAD_REQUEST and _has_answered(trajectory):
        trajectory_end(trajectory, Ending.ENDPOINT_ERROR, error.message)
    else:
        call_again(trajectory, error.message, error.retry_after_seconds, error.is_retryable)


def _has_answered(trajectory: Trajectory) -> bool:
    """The endpoint takes the run's calls, so what it refuses is this one conversation."""
    return Turn.objects.filter(trajectory__run=trajectory.run).exists()


def call_again(
    trajectory: Trajectory, reason: str, retry_after_seconds: float | None, retryable: bool
) -> None:
    """The trajectory waits for its next try; after the last one, or at once, the run is paused."""
    failures = count_failure(trajectory)
    trajectory_put(trajectory, state=Trajectory.State.WAITING, **NO_CALL)
    if not retryable or failures >= MOST_FAILURES:
        tries = f" ({failures} calls in a row failed)" if failures > 1 else ""
        where = f"trajectory {trajectory.label}, turn {trajectory.turns.counted().count() + 1}"
        advice = RESUME if retryable else MEND_AND_RESUME
        run_pause(trajectory.run, f"{reason}{tries}; seen in {where}. {advice}")
        return
    seconds = BACKOFF_SECONDS[min(failures, len(BACKOFF_SECONDS)) - 1] * random.uniform(0.8, 1.2)  # noqa: S311
    wait = timedelta(seconds=max(seconds, retry_after_seconds or 0))
    trajectory_put(trajectory, next_at=timezone.now() + wait, reason=reason)
    ring_next(trajectory.run)


def _unread(error: EndpointError) -> Reply:
    return Reply(text="", finish_reason=error.kind.value)
