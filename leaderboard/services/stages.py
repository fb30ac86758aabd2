"""Keeping what a worker reports of a stage: once, in order, in the chain."""

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone
from pydantic import ValidationError

from evaluator.records.base import canonical_json
from evaluator.records.evaluation import (
    EVIDENCE_TYPES,
    AnyStageResult,
    stage_result_from_json,
)
from evaluator.records.evidence import Artifact as ArtifactRecord
from evaluator.records.validation import field_problems
from evaluator.records.verdicts import Stage
from evaluator.records.worker_api import LEASE_SECONDS
from leaderboard.models import Artifact, Attempt, StageArtifact, StageRecord
from leaderboard.models.stage_record import chained_digest
from leaderboard.refusals import (
    ArtifactMissing,
    AttemptUnknown,
    FieldError,
    InvalidBody,
    StageConflict,
    StageRefused,
    StaleFence,
)
from leaderboard.services.attempts import (
    attempt_find,
    check_fence,
    lock_submission,
    records_before,
    stages_of,
)
from leaderboard.services.source_text import storable


def stage_post(*, attempt_id: str, fence: str, value: Any) -> StageRecord:
    """Store a StageResult given as JSON; the same one again changes nothing.

    Raises AttemptUnknown, StaleFence, StageRefused (unknown stage, out of order), InvalidBody,
    StageConflict (another result for a recorded stage), ArtifactMissing.
    """
    result = _read(attempt_find(attempt_id), value)
    with transaction.atomic():
        attempt = lock_attempt(attempt_id)
        check_fence(attempt, fence)
        if known := attempt.stage_records.filter(stage=result.stage.value).first():
            return _repeated(known, result)
        if attempt.state != Attempt.State.RUNNING:
            raise StaleFence(f"attempt {attempt.pk} is {attempt.state}; nothing is added to it")
        _check_order(attempt, result)
        return _append(attempt, result)


def lock_attempt(attempt_id: str) -> Attempt:
    """The attempt's row, locked for the transaction, with its job and submission."""
    attempt = attempt_find(attempt_id)
    lock_submission(attempt)
    found = (
        Attempt.objects.select_for_update(of=("self",))
        .select_related("job__submission__problem")
        .filter(pk=attempt.pk)
        .first()
    )
    if found is None:
        raise AttemptUnknown(f"there is no attempt {attempt_id!r}")
    return found


def _read(attempt: Attempt, value: Any) -> AnyStageResult:
    allowed = [stage.value for stage in stages_of(attempt.lane, attempt.target)]
    seen = value.get("stage") if isinstance(value, Mapping) else None
    if seen not in allowed:
        message = f"stage {seen!r} is not one of this attempt: {', '.join(allowed)}"
        error = FieldError(
            pointer="result.stage", message=message, seen=str(seen)[:60], allowed=allowed
        )
        raise StageRefused(message, errors=[error])
    try:
        return stage_result_from_json(value)
    except ValidationError as error:
        place, part = "result", value
        if error.title == EVIDENCE_TYPES[Stage(seen)].__name__:
            place, part = "result.evidence", value["evidence"]
        errors = [
            FieldError(
                pointer=f"{place}.{one.pointer}".rstrip("."), message=one.rule, seen=one.seen
            )
            for one in field_problems(error, part)
        ]
        raise InvalidBody(f"the result of {seen} does not fit its record", errors=errors) from error


def _repeated(known: StageRecord, result: AnyStageResult) -> StageRecord:
    if known.result_json != canonical_json(result.model_dump(mode="json")):
        raise StageConflict(
            f"{known.stage} is recorded already with digest {known.digest}; "
            "a record is never overwritten, a re-run adds a new one"
        )
    return known


def _check_order(attempt: Attempt, result: AnyStageResult) -> None:
    order = stages_of(attempt.lane, attempt.target)
    done = {record.stage: record for record in attempt.stage_records.all()}
    failed = [record.stage for record in done.values() if record.verdict != "PASSED"]
    if failed:
        raise StageRefused(f"{failed[0]} did not pass, so nothing follows; complete the attempt")
    expected = next(stage for stage in order if stage.value not in done)
    if result.stage is not expected:
        raise StageRefused(f"stage {result.stage.value!r} is out of order: next is {expected!r}")


def _append(attempt: Attempt, result: AnyStageResult) -> StageRecord:
    value = result.model_dump(mode="json")
    previous = chain_head(attempt)
    artifacts = _stored(result.artifacts)
    now = timezone.now()
    record = StageRecord.objects.create(
        attempt=attempt,
        stage=result.stage.value,
        verdict=result.verdict.value,
        message=storable(result.message),
        result_json=canonical_json(value),
        previous_digest=previous,
        digest=chained_digest(previous, value),
        started_at=result.started_at,
        ended_at=result.ended_at,
        posted_at=now,
    )
    link_artifacts(record, result.artifacts, artifacts)
    order = stages_of(attempt.lane, attempt.target)
    following = order[order.index(result.stage) + 1 :]
    Attempt.objects.filter(pk=attempt.pk).update(
        lease_until=now + timedelta(seconds=LEASE_SECONDS),
        current_stage=following[0].value if following and result.passed else "",
    )
    return record


def chain_head(attempt: Attempt) -> str:
    """The digest that the next record follows: the candidate's own before the first."""
    last = attempt.stage_records.order_by("id").last()
    if last is None:
        before = records_before(attempt)
        last = before[-1] if before else None
    return last.digest if last else attempt.job.submission.candidate_digest


def _stored(wanted: tuple[ArtifactRecord, ...]) -> dict[str, Artifact]:
    """Raises ArtifactMissing: artifacts come first, so that a record never points at nothing."""
    stored = Artifact.objects.in_bulk([artifact.sha256 for artifact in wanted])
    missing = [one for one in wanted if one.sha256 not in stored]
    if missing:
        names = ", ".join(f"{one.role} {one.sha256}" for one in missing)
        raise ArtifactMissing(f"put these artifacts before the stage: {names}")
    return stored


def link_artifacts(
    record: StageRecord, wanted: tuple[ArtifactRecord, ...], stored: dict[str, Artifact]
) -> None:
    unique = dict.fromkeys((one.sha256, one.role[:60]) for one in wanted)
    StageArtifact.objects.bulk_create(
        StageArtifact(stage_record=record, artifact=stored[sha256], role=role)
        for sha256, role in unique
    )
