"""A submission's page: its newest job as ladder, evidence, attempts and chain of digests."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from pydantic import ValidationError

from evaluator.records.evaluation import AnyStageResult
from evaluator.records.evidence import TimingEvidence
from evaluator.records.summary import planned_stages
from evaluator.records.verdicts import Stage
from leaderboard.charts import Chart, samples_chart
from leaderboard.models import Attempt, Correction, Evaluation, Job, StageRecord, Submission, Turn
from leaderboard.services.ladder import artifact_json, decisive_records
from leaderboard.services.queues import QueueReport, queue_report
from leaderboard.views.presenters.boards import Instructions, instructions
from leaderboard.views.presenters.ladder import Progress, Rung, ladder
from leaderboard.views.presenters.sources import SourceView, source_view
from leaderboard.views.presenters.states import submission_badge
from leaderboard.views.presenters.timing import TimingView, timing_view
from leaderboard.views.presenters.words import STAGES, VERDICTS, Badge, Meaning
from leaderboard.views.presenters.workers import environment_rows

MOST_TURNS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactLink:
    stage: str
    role: str
    sha256: str
    byte_count: int
    is_text: bool
    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LostArtifact:
    """Named by a record, but not kept here: a bundle may leave the built library out."""

    stage: str
    role: str
    sha256: str
    byte_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """`result` is None where the record has a format that this version cannot read."""

    record: StageRecord
    result: AnyStageResult | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Environments:
    """One row a part, one value an attempt; None where that machine has no such part."""

    attempts: tuple[Attempt, ...]
    rows: tuple[tuple[str, tuple[str | None, ...]], ...]


@dataclass(frozen=True, kw_only=True)
class SubmissionView:
    """Everything is derived from rows that the view has fetched; nothing here asks the database."""

    submission: Submission
    job: Job | None
    attempts: Sequence[Attempt]
    records: Sequence[StageRecord]
    evaluation: Evaluation | None
    waiting: QueueReport | None
    corrections: Sequence[Correction]
    seen: int | None = None

    @property
    def badge(self) -> Badge:
        return submission_badge(self.submission)

    @property
    def is_withdrawn(self) -> bool:
        return self.submission.is_withdrawn

    @property
    def waiting_text(self) -> str:
        return waiting_text(self.waiting) if self.waiting else ""

    @property
    def meaning(self) -> Meaning | None:
        return VERDICTS[self.submission.verdict] if self.submission.verdict else None

    @cached_property
    def sections(self) -> tuple[Section, ...]:
        """Evidence of each stage, the last first: what decided stands on top."""
        return tuple(_section(record) for record in reversed(self.records))

    @cached_property
    def results(self) -> tuple[AnyStageResult, ...]:
        return tuple(one.result for one in reversed(self.sections) if one.result)

    @cached_property
    def rungs(self) -> tuple[Rung, ...]:
        planned = planned_stages(is_gpu=self.submission.target_record.is_gpu)
        return ladder(planned, self.records, self._progress)

    @property
    def _progress(self) -> Progress:
        attempt = self.attempts[-1] if self.attempts else None
        running = attempt is not None and attempt.state == Attempt.State.RUNNING
        queued = attempt is not None and attempt.state == Attempt.State.QUEUED
        return Progress(
            state=self.submission.state,
            current_stage=attempt.current_stage if attempt and running else "",
            waiting_lane=attempt.lane if attempt and queued else "",
        )

    @property
    def running_stage(self) -> str:
        stage = self._progress.current_stage
        return STAGES[Stage(stage)][0] if stage in set(Stage) else ""

    @property
    def worker_name(self) -> str:
        return self.attempts[-1].worker if self.attempts else ""

    @property
    def flops_per_second(self) -> float | None:
        latency_ns = self.evaluation.latency_ns if self.evaluation else None
        return self.submission.problem.flop_count / (latency_ns * 1e-9) if latency_ns else None

    @property
    def peak_share(self) -> float | None:
        peak, rate = self.submission.target_record.peak_flops, self.flops_per_second
        return rate / peak if peak and rate else None

    @property
    def fresh_count(self) -> int:
        """How many stages have ended since the page was made that this fragment belongs to."""
        return len(self.records) - (len(self.records) if self.seen is None else self.seen)

    @property
    def artifacts(self) -> tuple[ArtifactLink, ...]:
        return tuple(
            ArtifactLink(stage=record.stage, **artifact_json(use))
            for record in self.records
            for use in record.stage_artifacts.all()
        )

    @property
    def lost_artifacts(self) -> tuple[LostArtifact, ...]:
        here = {one.sha256 for one in self.artifacts}
        return tuple(
            LostArtifact(
                stage=result.stage.value,
                role=one.role,
                sha256=one.sha256,
                byte_count=one.byte_count,
            )
            for result in self.results
            for one in result.artifacts
            if one.sha256 not in here
        )

    @property
    def lost_attempts(self) -> tuple[Attempt, ...]:
        return tuple(one for one in self.attempts if one.state in Attempt.OUR_FAULTS)

    @property
    def instructions(self) -> Instructions | None:
        return instructions(self.evaluation) if self.evaluation else None

    @cached_property
    def sources(self) -> tuple[SourceView, ...]:
        candidate = self.submission.candidate
        return tuple(
            source_view(source, number=number, entry_file=candidate.entry_file)
            for number, source in enumerate(candidate.sources, 1)
        )

    @cached_property
    def timing(self) -> TimingView | None:
        evidence = self._timing_evidence
        return timing_view(evidence) if evidence else None

    @cached_property
    def chart(self) -> Chart | None:
        evidence = self._timing_evidence
        return samples_chart(evidence) if evidence and evidence.samples else None

    @property
    def sample_count(self) -> int:
        seen = self._timing_evidence
        return len(seen.samples) + len(seen.baseline_samples) if seen else 0

    @property
    def baseline_title(self) -> str:
        """Name and version; versions that begin with the name say it once."""
        seen = self.evaluation
        if seen is None:
            return ""
        if seen.baseline_version.startswith(seen.baseline_name):
            return seen.baseline_version
        return f"{seen.baseline_name} {seen.baseline_version}".strip()

    @property
    def _timing_evidence(self) -> TimingEvidence | None:
        found = (result.evidence for result in self.results)
        return next((one for one in found if isinstance(one, TimingEvidence)), None)

    @property
    def environments(self) -> Environments | None:
        """None while no attempt has reported the machine that it ran on."""
        told = tuple(one for one in self.attempts if one.environment)
        tables = [environment_rows(one.environment) for one in told]
        rows = tuple(
            (row[0][0], tuple(value for _, value in row)) for row in zip(*tables, strict=True)
        )
        return Environments(attempts=told, rows=rows) if told else None

    @property
    def commands(self) -> tuple[tuple[str, str], ...]:
        """(stage, command line) of everything that was run, as it was run."""
        found = []
        for result in self.results:
            evidence = result.evidence
            process = getattr(evidence, "process", None)
            command = process.command if process else getattr(evidence, "command", ())
            if command:
                found.append((result.stage.value, " ".join(command)))
        return tuple(found)


def _section(record: StageRecord) -> Section:
    try:
        return Section(record=record, result=record.result)
    except ValidationError:
        return Section(record=record, result=None)


def submission_view(submission: Submission, *, seen: int | None = None) -> SubmissionView:
    """The newest job of a submission; `seen` is how many stages the reader's page shows."""
    job = submission.jobs.order_by("-number").first()
    return SubmissionView(
        submission=submission,
        job=job,
        attempts=list(job.attempts.order_by("created_at", "id")) if job else [],
        records=decisive_records(submission),
        evaluation=submission.evaluation,
        waiting=queue_report(submission=submission),
        seen=seen,
        corrections=list(
            Correction.objects.filter(evaluation__submission=submission).select_related("user")
        ),
    )


def turns_of(submission: Submission) -> list[Turn]:
    """The turns of model runs whose answers held this kernel, the first one first."""
    rows = Turn.objects.filter(submission=submission).for_grid()
    rows = rows.select_related("trajectory__variant", "trajectory__run")
    return list(rows.defer("trajectory__variant__packed_messages").order_by("pk")[:MOST_TURNS])


def waiting_text(report: QueueReport) -> str:
    """One sentence: the place in the queue, and who can take it or why nobody does yet."""
    if report.not_before:
        return f"Waiting: {report.note}."
    but = ";" if report.workers_online else ", but"
    return f"Number {report.position} in the queue{but} {report.note}."
