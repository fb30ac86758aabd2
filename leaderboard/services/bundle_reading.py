"""Taking a bundle in: nothing is believed before digests and chain are checked."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from django.db import transaction
from django.utils import timezone

from evaluator import SCORING_VERSION
from evaluator.records.base import canonical_json, sha256_hex, strict_loads
from evaluator.records.candidate import Candidate
from evaluator.records.evaluation import EvaluationRecord, stage_result_from_json
from evaluator.records.problem import Problem as ProblemRecord
from evaluator.records.summary import planned_stages, summarise
from evaluator.targets import find_target
from leaderboard.models import (
    Artifact,
    Attempt,
    Entrant,
    Evaluation,
    Job,
    StageRecord,
    Submission,
)
from leaderboard.models.stage_record import chained_digest
from leaderboard.services.archive import BrokenBundle, archive_files
from leaderboard.services.artifacts import artifact_put
from leaderboard.services.audit import audit_append
from leaderboard.services.bundle import FORMAT
from leaderboard.services.catalogue import problem_row
from leaderboard.services.evaluations import evaluation_record
from leaderboard.services.settling import submission_settle
from leaderboard.services.source_text import storable
from leaderboard.services.stages import link_artifacts


@dataclass(frozen=True, slots=True, kw_only=True)
class Bundle:
    """A verified bundle, parsed."""

    files: dict[str, bytes]
    submission: dict[str, Any]
    problem: ProblemRecord
    candidate: Candidate
    stages: list[dict[str, Any]]
    record: EvaluationRecord


def bundle_read(path: Path) -> Bundle:
    """Raises BrokenBundle where a digest, the chain or the verdict does not hold."""
    return bundle_of(path.name, archive_files(path))


def bundle_of(
    name: str, files: dict[str, bytes], *, not_kept: Collection[str] = frozenset()
) -> Bundle:
    """The bundle of these files, verified; `not_kept`: digests of artifacts that may be missing.

    Raises BrokenBundle as `bundle_read` does.
    """
    _check_manifest(name, files, not_kept)
    _check_artifacts(name, files)
    if "record.json" not in files:
        raise BrokenBundle(f"{name}: holds no record.json: it was never evaluated")
    stages = [
        strict_loads(data) for name, data in sorted(files.items()) if name.startswith("stages/")
    ]
    bundle = Bundle(
        files=files,
        submission=strict_loads(files["submission.json"]),
        problem=ProblemRecord.from_json(files["problem.json"]),
        candidate=Candidate.from_json(files["candidate.json"]),
        stages=stages,
        record=EvaluationRecord.from_json(files["record.json"]),
    )
    _check_chain(name, bundle)
    return bundle


def _check_manifest(name: str, files: dict[str, bytes], not_kept: Collection[str]) -> None:
    listed = manifest_of(name, files, FORMAT)["files"]
    check_files(name, files, {path: one for path, one in listed.items() if one not in not_kept})


def manifest_of(name: str, files: dict[str, bytes], expected: str) -> dict[str, Any]:
    """The manifest, of the expected format. Raises BrokenBundle."""
    manifest = strict_loads(files.get("manifest.json", b"{}"))
    seen = manifest.get("format") if isinstance(manifest, dict) else None
    if seen != expected:
        raise BrokenBundle(f"{name}: manifest.json has format {seen!r}, expected {expected!r}")
    return dict(manifest)


def check_files(name: str, files: dict[str, bytes], listed: dict[str, str]) -> None:
    """Each file is listed with its digest, and nothing else is there. Raises BrokenBundle."""
    if extra := sorted(set(files) - set(listed) - {"manifest.json"}):
        raise BrokenBundle(f"{name}: {extra[0]} is not in the manifest")
    for path, expected in listed.items():
        seen = sha256_hex(files[path]) if path in files else "no file"
        if seen != expected:
            raise BrokenBundle(f"{name}: {path}: expected SHA-256 {expected}, found {seen}")


def _check_artifacts(name: str, files: dict[str, bytes]) -> None:
    """Artifacts are stored by the digest in their names, so these must be digests, and theirs."""
    for path, data in files.items():
        if not path.startswith("artifacts/"):
            continue
        told = re.fullmatch(r"artifacts/[A-Za-z0-9-]*_([0-9a-f]{64})", path)
        if told is None or told[1] != sha256_hex(data):
            raise BrokenBundle(f"{name}: {path[:200]}: the name does not end in the file's SHA-256")


def _check_chain(name: str, bundle: Bundle) -> None:
    previous = sha256_hex(bundle.files["candidate.json"])
    for number, stage in enumerate(bundle.stages, 1):
        computed = chained_digest(previous, stage["record"])
        if stage["previous"] != previous or stage["digest"] != computed:
            raise BrokenBundle(
                f"{name}: stage {number} ({stage['record'].get('stage')}) breaks the chain: "
                f"digest {stage['digest']}, computed {computed}"
            )
        previous = computed
    told = strict_loads(bundle.files["record.json"])["stages"]
    if told != [stage["record"] for stage in bundle.stages]:
        raise BrokenBundle(f"{name}: record.json and stages/ tell different results")


@transaction.atomic
def bundle_load(bundle: Bundle) -> Submission | None:
    """The submission as it was, with its times, digests and chain; None if it is here already.

    Verdict and score are computed anew. Raises BrokenBundle if the verdict differs.
    """
    said = bundle.submission
    if Submission.objects.filter(pk=said["id"]).exists():
        return None
    if (submission := _submission(bundle)) is None:
        return None
    job = _job(submission, said["job"])
    attempts = {one["id"]: _attempt(job, submission, one) for one in said["job"]["attempts"]}
    artifacts = _artifacts(bundle)
    records = [_stage(stage, attempts[stage["attempt"]], artifacts) for stage in bundle.stages]
    planned = planned_stages(is_gpu=find_target(submission.target).is_gpu)
    summary = summarise([record.result for record in records], planned)
    if summary.verdict is None or summary.verdict.value != said["evaluation"]["verdict"]:
        raise BrokenBundle(
            f"{said['id']}: the stages give {summary.verdict}, "
            f"the bundle says {said['evaluation']['verdict']}"
        )
    _same_scoring(said)
    evaluation_record(
        attempt=records[-1].attempt,
        records=records,
        summary=summary,
        environment=bundle.record.environment,
        created_at=datetime.fromisoformat(said["evaluation"]["created_at"]),
        trust=Evaluation.Trust(said["evaluation"]["trust"]),
    )
    submission_settle(submission=submission, state=Submission.State.DONE, message=summary.message)
    ended_at = datetime.fromisoformat(said["ended_at"]) if said["ended_at"] else timezone.now()
    Submission.objects.filter(pk=submission.pk).update(ended_at=ended_at)
    audit_append(actor="operator", action="imported", subject=submission.pk)
    return submission


def _same_scoring(said: dict[str, Any]) -> None:
    seen = said["evaluation"]["scoring_version"]
    if seen != SCORING_VERSION:
        raise BrokenBundle(
            f"{said['id']}: scoring version {seen!r}; this site scores by {SCORING_VERSION!r}, "
            "and boards never mix the two: run the kernel again"
        )


def _submission(bundle: Bundle) -> Submission | None:
    """None where the entrant handed in the same content here already."""
    said, digest = bundle.submission, sha256_hex(bundle.files["candidate.json"])
    entrant, _ = Entrant.objects.get_or_create(
        slug=said["entrant"]["slug"],
        defaults={"display_name": said["entrant"]["display_name"], "kind": said["entrant"]["kind"]},
    )
    problem, _ = problem_row(bundle.problem)
    same = {"problem": problem, "target": bundle.candidate.target, "candidate_digest": digest}
    if entrant.submissions.filter(**same).exists():
        return None
    return Submission.objects.create(
        pk=said["id"],
        entrant=entrant,
        **same,
        language=bundle.candidate.language.value,
        binding=bundle.candidate.binding.value,
        name=said["name"],
        description=said["description"],
        candidate_json=bundle.files["candidate.json"].decode(),
        created_at=datetime.fromisoformat(said["created_at"]),
    )


def _job(submission: Submission, said: dict[str, Any]) -> Job:
    return Job.objects.create(
        pk=said["id"],
        submission=submission,
        number=said["number"],
        reason=said["reason"],
        state=Job.State.DONE,
        lane=said["attempts"][-1]["lane"],
        created_at=datetime.fromisoformat(said["created_at"]),
        ended_at=_when(said["ended_at"]),
    )


def _attempt(job: Job, submission: Submission, said: dict[str, Any]) -> Attempt:
    return Attempt.objects.create(
        pk=said["id"],
        job=job,
        lane=Job.Lane(said["lane"]),
        target=submission.target,
        number=said["number"],
        state=Attempt.State(said["state"]),
        worker=said["worker"],
        message=said["message"],
        environment=said["environment"],
        created_at=datetime.fromisoformat(said["created_at"]),
        claimed_at=_when(said["claimed_at"]),
        ended_at=_when(said["ended_at"]),
    )


def _artifacts(bundle: Bundle) -> dict[str, Artifact]:
    stored = {}
    for name, data in bundle.files.items():
        if name.startswith("artifacts/"):
            sha256 = name.rpartition("_")[2]
            stored[sha256], _ = artifact_put(sha256=sha256, chunks=[data])
    return stored


def _stage(said: dict[str, Any], attempt: Attempt, artifacts: dict[str, Artifact]) -> StageRecord:
    result = stage_result_from_json(said["record"])
    record = StageRecord.objects.create(
        attempt=attempt,
        stage=result.stage.value,
        verdict=result.verdict.value,
        message=storable(result.message),
        result_json=canonical_json(said["record"]),
        previous_digest=said["previous"],
        digest=said["digest"],
        started_at=result.started_at,
        ended_at=result.ended_at,
        posted_at=datetime.fromisoformat(said["posted_at"]),
    )
    present = tuple(one for one in result.artifacts if one.sha256 in artifacts)
    link_artifacts(record, present, artifacts)
    return record


def _when(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text) if text else None
