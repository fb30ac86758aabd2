"""What the API shows of each noun, as plain JSON values."""

from dataclasses import asdict
from typing import Any

from django.urls import reverse
from rest_framework.request import Request

from evaluator.problems import prototype
from evaluator.records.summary import planned_stages, summarise
from evaluator.targets import TARGETS, Target
from leaderboard.models import Attempt, Entrant, Evaluation, Problem, Submission, Worker
from leaderboard.services.boards import Board
from leaderboard.services.ladder import decisive_records, stage_ladder
from leaderboard.services.queues import queue_report
from leaderboard.services.workers import workers_able

SCORE_FIELDS = (
    "scoring_version",
    "latency_ns",
    "baseline_latency_ns",
    "speedup",
    "speedup_low",
    "speedup_high",
    "noise",
    "sample_count",
)


def entrant_json(entrant: Entrant) -> dict[str, Any]:
    return {"slug": entrant.slug, "display_name": entrant.display_name, "kind": entrant.kind}


def submission_brief(submission: Submission, request: Request) -> dict[str, Any]:
    """One row of a list: no evidence, no sources."""
    absolute = request.build_absolute_uri
    return {
        "id": str(submission.pk),
        "url": absolute(reverse("api:submission", args=[submission.pk])),
        "html_url": absolute(submission.get_absolute_url()),
        "name": submission.name,
        "state": submission.state,
        "verdict": submission.verdict,
        "withdrawn": submission.is_withdrawn,
        "message": submission.message,
        "problem": submission.problem.name,
        "target": submission.target,
        "language": submission.language,
        "binding": submission.binding,
        "entrant": entrant_json(submission.entrant),
        "created_at": submission.created_at.isoformat(),
        "ended_at": submission.ended_at.isoformat() if submission.ended_at else None,
    }


def submission_json(submission: Submission, request: Request) -> dict[str, Any]:
    """Everything: stages with evidence, queue, score, sources."""
    records = decisive_records(submission)
    evaluation = submission.evaluation
    queue = queue_report(submission=submission)
    candidate = submission.candidate
    return {
        **submission_brief(submission, request),
        "description": submission.description,
        "problem_digest": submission.problem.digest,
        "stages": stage_ladder(submission, records),
        "queue": queue.to_json() if queue else None,
        "score": score_json(evaluation),
        "trust": evaluation.trust if evaluation else None,
        "target_instructions": _instructions(submission, evaluation, records),
        "environment": _environment(submission, evaluation),
        "candidate": {
            "digest": submission.candidate_digest,
            "entry_file": candidate.entry_file,
            "entry_symbol": candidate.entry_symbol,
            "sources": [source.model_dump() for source in candidate.sources],
        },
        "bundle_url": request.build_absolute_uri(reverse("api:bundle", args=[submission.pk])),
    }


def score_json(evaluation: Evaluation | None) -> dict[str, Any] | None:
    if evaluation is None or evaluation.speedup is None:
        return None
    return {name: getattr(evaluation, name) for name in SCORE_FIELDS}


def instructions_json(evaluation: Evaluation) -> dict[str, Any] | None:
    """None on a target that has no target instructions, or before the disassembly."""
    if not evaluation.instruction_status:
        return None
    return {
        "status": evaluation.instruction_status,
        "reason": evaluation.instruction_reason,
        "tier": evaluation.instruction_tier or None,
        "work_share": evaluation.work_share,
        "work_share_reason": evaluation.work_share_reason or None,
    }


def _instructions(
    submission: Submission, evaluation: Evaluation | None, records: list[Any]
) -> dict[str, Any] | None:
    if evaluation:
        return instructions_json(evaluation)
    planned = planned_stages(is_gpu=submission.target_record.is_gpu)
    seen = summarise([record.result for record in records], planned).target_instructions
    return seen.model_dump(mode="json") if seen else None


def _environment(submission: Submission, evaluation: Evaluation | None) -> Any:
    if evaluation:
        return evaluation.environment
    known = Attempt.objects.filter(job__submission=submission, environment__isnull=False)
    return known.order_by("-ended_at").values_list("environment", flat=True).first()


def board_json(board: Board, request: Request) -> dict[str, Any]:
    baseline = board.baseline
    return {
        "target": board.target.slug,
        "problem": board.problem.name,
        "problem_digest": board.problem.digest,
        "scoring_version": board.scoring_version,
        "development": board.target.development,
        "baseline": {
            "rank": None,
            "name": baseline.name,
            "version": baseline.version,
            "latency_ns": baseline.latency_ns,
            "n": baseline.sample_count,
            "reason": baseline.reason or None,
        },
        "rows": [board_row(row, board, request) for row in board.rows],
        "row_count": board.row_count,
        "rows_cut": board.is_cut,
    }


def board_row(row: Evaluation, board: Board, request: Request) -> dict[str, Any]:
    submission, built = row.submission, board.resources.get(row.job_id)
    best, worst = row.band  # type: ignore[attr-defined]
    absolute = request.build_absolute_uri
    return {
        "rank": row.rank,  # type: ignore[attr-defined]
        "rank_band": {"best": best, "worst": worst},
        "id": str(submission.pk),
        "url": absolute(reverse("api:submission", args=[submission.pk])),
        "html_url": absolute(submission.get_absolute_url()),
        "name": submission.name,
        "entrant": entrant_json(submission.entrant),
        "speedup": row.speedup,
        "latency_ns": row.latency_ns,
        "n": row.sample_count,
        "score": score_json(row),
        "baseline": {"name": row.baseline_name, "version": row.baseline_version},
        "target_instructions": instructions_json(row),
        "resources": asdict(built) if built else None,
        "trust": row.trust,
        "submitted_at": submission.created_at.isoformat(),
        "evaluated_at": row.created_at.isoformat(),
    }


def problem_json(problem: Problem, request: Request) -> dict[str, Any]:
    """The record with its digest, prototypes ready to copy, and where its boards are."""
    record = problem.record
    return {
        **record.model_dump(mode="json"),
        "digest": problem.digest,
        "prototypes": _prototypes(problem),
        "boards": {
            target: request.build_absolute_uri(reverse("api:board", args=[target, problem.name]))
            for target in problem.targets
        },
    }


def _prototypes(problem: Problem) -> dict[str, str]:
    wanted = {
        (language, binding)
        for slug in problem.targets
        for language in TARGETS[slug].languages
        for binding in TARGETS[slug].bindings_of(language)
    }
    return {
        f"{language}/{binding}": prototype(problem.record, binding, language)
        for language, binding in sorted(wanted)
    }


def target_json(target: Target) -> dict[str, Any]:
    return {
        **asdict(target),
        "queue": target.queue,
        "is_gpu": target.is_gpu,
        "workers_online": workers_able(lane="gpu", target=target.slug),
    }


def worker_json(
    worker: Worker, *, online: bool, busy_with: list[str], lost_count: int
) -> dict[str, Any]:
    """`state` is offline after a minute of silence, busy while an attempt is in its hands."""
    state = worker.state
    if not online:
        state = "offline"
    elif busy_with and state == Worker.State.IDLE:
        state = Worker.State.BUSY.value
    return {
        "name": worker.name,
        "state": state,
        "lanes": worker.lanes,
        "targets": worker.targets,
        "note": worker.note,
        "attempts": busy_with,
        "attempts_lost_last_day": lost_count,
        "environment": worker.environment,
        "first_seen": worker.first_seen.isoformat(),
        "last_seen": worker.last_seen.isoformat(),
    }
