"""A submission as one archive that stands alone: what was handed in, found and measured.

Layout  manifest.json      {format, submission, files: {path: sha256}} of every other file
        README.txt         how to verify it without this site
        submission.json    names, times, verdict, jobs and attempts
        problem.json       the problem record as it was judged
        candidate.json     the Candidate record whose SHA-256 starts the chain
        candidate/<path>   the sources, byte for byte
        stages/NN_<stage>.json  {attempt, posted_at, previous, digest, record}
        artifacts/<role>_<sha256>
        record.json        the EvaluationRecord; absent before there is a verdict
"""

import io
import json
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any

from evaluator.records.base import canonical_json, sha256_hex
from leaderboard.models import Attempt, Entrant, Evaluation, Job, StageRecord, Submission

FORMAT = "ptxboard.bundle/1"
README = """This archive holds one kernel submitted to PTXBoard and all that was found out about it.

To verify it without the site:
1. manifest.json lists the SHA-256 of every other file: compare each with sha256sum.
2. The chain: stages/ holds one file a stage, in order. For each, SHA-256 of the text
   {"previous":<previous>,"record":<record>}
   as canonical JSON (keys sorted, no spaces, UTF-8 kept as it is) must equal its "digest", and its
   "previous" must equal the digest of the stage before. The first "previous" is the SHA-256 of
   candidate.json, which is canonical JSON already.
3. artifacts/<role>_<sha256>: the name tells the digest of the bytes.

PTXBoard's own `manage.py load_evaluations FILE` checks all of this before it takes anything in.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class BundleFile:
    """Bytes, or a file on disk whose digest its record gives already."""

    path: str
    data: bytes | None = None
    source: Path | None = None
    sha256: str = ""
    packing: int = zipfile.ZIP_DEFLATED

    @property
    def is_artifact(self) -> bool:
        return self.path.startswith("artifacts/")

    @property
    def digest(self) -> str:
        return self.sha256 or sha256_hex(self.data or b"")


def bundle_write(*, submission: Submission, out: IO[bytes], artifacts: bool = True) -> None:
    """Write the archive; equal submissions give equal bytes.

    Without `artifacts` the manifest still names them: whoever asks so keeps them elsewhere.
    """
    files = list(bundle_files(submission))
    manifest = {
        "format": FORMAT,
        "submission": str(submission.pk),
        "files": {file.path: file.digest for file in files},
    }
    made = submission.created_at.timetuple()[:6]
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        add_file(archive, made, BundleFile(path="manifest.json", data=pretty(manifest)))
        for file in files:
            if artifacts or not file.is_artifact:
                add_file(archive, made, file)


def bundle_bytes(*, submission: Submission) -> bytes:
    out = io.BytesIO()
    bundle_write(submission=submission, out=out)
    return out.getvalue()


def add_file(archive: zipfile.ZipFile, made: tuple[int, ...], file: BundleFile) -> None:
    info = zipfile.ZipInfo(file.path, made)  # type: ignore[arg-type]
    info.compress_type = file.packing
    info.external_attr = 0o644 << 16
    with archive.open(info, "w") as target:
        if file.source is None:
            target.write(file.data or b"")
            return
        with file.source.open("rb") as source:
            while chunk := source.read(1 << 20):
                target.write(chunk)


def bundle_files(submission: Submission) -> Iterator[BundleFile]:
    """Every file but the manifest, of the job that counts."""
    job = counted_job(submission)
    records = job_records(job) if job else []
    evaluation = Evaluation.objects.filter(job=job).first() if job else None
    yield BundleFile(path="README.txt", data=README.encode())
    yield BundleFile(
        path="submission.json", data=pretty(submission_summary(submission, job, evaluation))
    )
    yield BundleFile(path="problem.json", data=submission.problem.record_json.encode())
    yield BundleFile(path="candidate.json", data=submission.candidate_json.encode())
    for source in submission.candidate.sources:
        yield BundleFile(path=f"candidate/{source.path}", data=source.content.encode())
    for number, record in enumerate(records, 1):
        data = canonical_json(stage_summary(record)).encode()
        yield BundleFile(path=f"stages/{number:02d}_{record.stage}.json", data=data)
    yield from _artifact_files(records)
    if evaluation:
        yield BundleFile(path="record.json", data=evaluation.record_json.encode())


def _artifact_files(records: Iterable[StageRecord]) -> Iterator[BundleFile]:
    seen = set()
    for record in records:
        for use in record.stage_artifacts.all():
            name = f"artifacts/{_plain(use.role)}_{use.artifact_id}"
            if name not in seen and use.artifact.path.exists():
                seen.add(name)
                yield BundleFile(path=name, source=use.artifact.path, sha256=use.artifact_id)


def _plain(role: str) -> str:
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in role)


def counted_job(submission: Submission) -> Job | None:
    """The job of the valid evaluation, else the newest."""
    evaluation = submission.evaluation
    if evaluation:
        return evaluation.job
    return submission.jobs.order_by("-number").first()


def job_records(job: Job) -> list[StageRecord]:
    """Records of the attempts that finished or still run, in chain order."""
    return list(
        StageRecord.objects.filter(
            attempt__job=job,
            attempt__state__in=[Attempt.State.FINISHED, Attempt.State.RUNNING],
        )
        .select_related("attempt")
        .prefetch_related("stage_artifacts__artifact")
        .order_by("id")
    )


def stage_summary(record: StageRecord) -> dict[str, Any]:
    return {
        "attempt": str(record.attempt_id),
        "posted_at": record.posted_at.isoformat(),
        "previous": record.previous_digest,
        "digest": record.digest,
        "record": json.loads(record.result_json),
    }


def submission_summary(
    submission: Submission, job: Job | None, evaluation: Evaluation | None
) -> dict[str, Any]:
    return {
        "id": str(submission.pk),
        "name": submission.name,
        "description": submission.description,
        "entrant": entrant_summary(submission.entrant),
        "problem": {"name": submission.problem.name, "digest": submission.problem.digest},
        "target": submission.target,
        "language": submission.language,
        "binding": submission.binding,
        "candidate_digest": submission.candidate_digest,
        "state": submission.state,
        "verdict": submission.verdict,
        "message": submission.message,
        "created_at": submission.created_at.isoformat(),
        "ended_at": _time(submission.ended_at),
        "job": job_summary(job) if job else None,
        "evaluation": evaluation_summary(evaluation) if evaluation else None,
    }


def entrant_summary(entrant: Entrant) -> dict[str, str]:
    return {"slug": entrant.slug, "display_name": entrant.display_name, "kind": entrant.kind}


def job_summary(job: Job) -> dict[str, Any]:
    return {
        "id": str(job.pk),
        "number": job.number,
        "reason": job.reason,
        "created_at": job.created_at.isoformat(),
        "ended_at": _time(job.ended_at),
        "attempts": [attempt_summary(attempt) for attempt in job.attempts.all()],
    }


def attempt_summary(attempt: Attempt) -> dict[str, Any]:
    return {
        "id": str(attempt.pk),
        "lane": attempt.lane,
        "number": attempt.number,
        "state": attempt.state,
        "worker": attempt.worker,
        "message": attempt.message,
        "created_at": attempt.created_at.isoformat(),
        "claimed_at": _time(attempt.claimed_at),
        "ended_at": _time(attempt.ended_at),
        "environment": attempt.environment,
    }


def evaluation_summary(evaluation: Evaluation) -> dict[str, Any]:
    return {
        "verdict": evaluation.verdict,
        "trust": evaluation.trust,
        "scoring_version": evaluation.scoring_version,
        "worker": evaluation.worker,
        "chain_digest": evaluation.chain_digest,
        "created_at": evaluation.created_at.isoformat(),
    }


def _time(value: datetime | None) -> str | None:
    return value.isoformat() if value else None


def pretty(value: Any) -> bytes:
    return (json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()
