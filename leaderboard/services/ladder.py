"""The stages of a submission's newest job, reached or not, as the API shows them."""

import json
from typing import Any

from django.urls import reverse

from evaluator.records.summary import LANE_OF, planned_stages
from evaluator.records.verdicts import Stage
from leaderboard.models import Attempt, StageArtifact, StageRecord, Submission


def decisive_records(submission: Submission) -> list[StageRecord]:
    """The newest record of each stage of the newest job, in order; two queries with artifacts."""
    job = submission.jobs.order_by("-number").first()
    if job is None:
        return []
    rows = (
        StageRecord.objects.filter(attempt__job=job)
        .select_related("attempt")
        .prefetch_related("stage_artifacts__artifact")
        .order_by("id")
    )
    newest = {row.stage: row for row in rows}
    return [newest[stage.value] for stage in Stage if stage.value in newest]


def stage_ladder(submission: Submission, records: list[StageRecord]) -> list[dict[str, Any]]:
    """One entry for each stage there is; `skipped` where the target's plan leaves it out."""
    by_stage = {record.stage: record for record in records}
    planned = planned_stages(is_gpu=submission.target_record.is_gpu)
    current = _current_attempt(submission)
    ended = not submission.is_open or any(record.verdict != "PASSED" for record in records)
    ladder = []
    for stage in Stage:
        record = by_stage.get(stage.value)
        if record is not None:
            ladder.append(_reached(record))
        elif stage not in planned:
            ladder.append(_unreached(stage, "skipped"))
        else:
            ladder.append(_unreached(stage, _state(stage, ended, current)))
    return ladder


def _current_attempt(submission: Submission) -> Attempt | None:
    if not submission.is_open:
        return None
    return Attempt.objects.filter(job__submission=submission, state=Attempt.State.RUNNING).first()


def _state(stage: Stage, ended: bool, current: Attempt | None) -> str:
    if ended:
        return "not_reached"
    running = current is not None and current.current_stage == stage.value
    return "running" if running else "waiting"


def _unreached(stage: Stage, state: str) -> dict[str, Any]:
    return {
        "stage": stage.value,
        "lane": LANE_OF[stage].value,
        "verdict": None,
        "state": state,
        "message": "",
        "started_at": None,
        "ended_at": None,
        "evidence": None,
        "artifacts": [],
        "digest": None,
    }


def _reached(record: StageRecord) -> dict[str, Any]:
    result = json.loads(record.result_json)
    return {
        "stage": record.stage,
        "lane": LANE_OF[Stage(record.stage)].value,
        "verdict": record.verdict,
        "state": "passed" if record.verdict == "PASSED" else "failed",
        "message": record.message,
        "started_at": result.get("started_at"),
        "ended_at": result.get("ended_at"),
        "evidence": result.get("evidence"),
        "artifacts": [artifact_json(use) for use in record.stage_artifacts.all()],
        "digest": record.digest,
    }


def artifact_json(use: StageArtifact) -> dict[str, Any]:
    artifact = use.artifact
    return {
        "role": use.role,
        "sha256": artifact.sha256,
        "byte_count": artifact.byte_count,
        "is_text": artifact.is_text,
        "url": reverse("api:artifact", args=[artifact.sha256]),
    }
