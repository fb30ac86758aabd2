"""An evaluation's row from stage records; the worker's own summary is never asked for."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from evaluator import SCORING_VERSION
from evaluator.records.base import canonical_json, strict_loads
from evaluator.records.evaluation import AnyStageResult, Environment, EvaluationRecord
from evaluator.records.evidence import TimingEvidence
from evaluator.records.summary import Summary
from evaluator.records.verdicts import Verdict
from leaderboard.models import Attempt, Correction, Evaluation, StageRecord, Submission
from leaderboard.services.audit import audit_append
from leaderboard.services.settling import submission_settle
from leaderboard.services.source_text import storable
from leaderboard.services.standings_update import standings_of_submission


def evaluation_record(
    *,
    attempt: Attempt,
    records: Sequence[StageRecord],
    summary: Summary,
    environment: Environment,
    created_at: datetime | None = None,
    trust: str = Evaluation.Trust.VERIFIED,
) -> Evaluation:
    """Add the evaluation of a job, inside the caller's transaction; the newest verdict counts.

    INCONCLUSIVE is nobody's verdict: it does not replace an earlier one.
    """
    assert summary.verdict is not None, "a job without a verdict has no evaluation"
    submission = attempt.job.submission
    results = [record.result for record in records]
    record = EvaluationRecord(
        candidate=submission.candidate,
        problem_digest=submission.problem.digest,
        environment=environment,
        stages=tuple(results),
        stages_not_reached=summary.not_reached,
        verdict=summary.verdict,
        message=summary.message,
        target_instructions=summary.target_instructions,
        score=summary.score,
    )
    valid = _takes_over(submission, summary.verdict)
    evaluation = Evaluation.objects.create(
        submission=submission,
        job=attempt.job,
        problem=submission.problem,
        target=submission.target,
        valid=valid,
        trust=trust,
        verdict=summary.verdict.value,
        message=storable(summary.message),
        worker=attempt.worker,
        environment=environment.model_dump(mode="json"),
        record_json=_record_json(record, records),
        chain_digest=records[-1].digest if records else submission.candidate_digest,
        created_at=created_at or timezone.now(),
        **_score_columns(summary, results),
        **_instruction_columns(summary),
    )
    standings_of_submission(submission.pk)
    audit_append(
        actor=attempt.worker or "site",
        action="evaluation.recorded",
        subject=submission.pk,
        detail={"verdict": evaluation.verdict, "chain": evaluation.chain_digest, "valid": valid},
    )
    return evaluation


def _record_json(record: EvaluationRecord, stages: Sequence[StageRecord]) -> str:
    """The record with its stages to the letter of the chain.

    Written anew they would gain the fields that their types have gained since, in bundles of
    older sites, and the bundle of such a record would contradict itself.
    """
    value = record.model_dump(mode="json")
    value["stages"] = [strict_loads(stage.result_json) for stage in stages]
    return canonical_json(value)


def _takes_over(submission: Submission, verdict: Verdict) -> bool:
    """Clears the way for a new valid evaluation; False where an earlier one stays."""
    earlier = Evaluation.objects.filter(submission=submission, valid=True)
    if verdict is Verdict.INCONCLUSIVE and earlier.exclude(verdict=verdict.value).exists():
        return False
    earlier.update(valid=False)
    return True


def _score_columns(summary: Summary, results: Sequence[AnyStageResult]) -> dict[str, Any]:
    if summary.score is None:
        return {"scoring_version": SCORING_VERSION}
    columns: dict[str, Any] = summary.score.model_dump()
    timing = next(r.evidence for r in results if isinstance(r.evidence, TimingEvidence))
    return {
        **columns,
        "baseline_name": timing.baseline.name[:200],
        "baseline_version": timing.baseline_version[:200],
        "baseline_sample_count": len(timing.baseline_samples),
    }


def _instruction_columns(summary: Summary) -> dict[str, Any]:
    seen = summary.target_instructions
    if seen is None:
        return {}
    return {
        "instruction_status": seen.status.value,
        "instruction_reason": seen.reason,
        "instruction_tier": seen.tier.value if seen.tier else "",
        "work_share": seen.work_share,
        "work_share_reason": seen.work_share_reason or "",
    }


@transaction.atomic
def evaluation_correct(
    *, evaluation: Evaluation, valid: bool, reason: str, user: User
) -> Correction:
    """Withdraw or restore an evaluation: it stays, with who and why; boards read the valid one."""
    if valid:
        Evaluation.objects.filter(submission=evaluation.submission_id, valid=True).update(
            valid=False
        )
    Evaluation.objects.filter(pk=evaluation.pk).update(valid=valid)
    correction = Correction.objects.create(
        evaluation=evaluation, valid=valid, reason=reason, user=user, created_at=timezone.now()
    )
    if valid:
        message = evaluation.message
        submission_settle(
            submission=evaluation.submission, state=Submission.State.DONE, message=message
        )
    standings_of_submission(evaluation.submission_id)
    audit_append(
        actor=user.get_username(),
        action="evaluation.restored" if valid else "evaluation.withdrawn",
        subject=evaluation.submission_id,
        detail={"reason": reason},
    )
    return correction
