"""A submission's page: its newest job as ladder, evidence, attempts and chain of digests."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from django.utils import timezone

from evaluator.records.evaluation import AnyStageResult
from evaluator.records.evidence import TimingEvidence
from evaluator.records.summary import planned_stages
from evaluator.records.verdicts import Stage
from leaderboard.charts import Chart, samples_chart
from leaderboard.models import Attempt, Evaluation, Job, StageRecord, Submission, Worker
from leaderboard.views.presenters.boards import Instructions, instructions
from leaderboard.views.presenters.ladder import Progress, Rung, ladder
from leaderboard.views.presenters.sources import SourceView, source_view
from leaderboard.views.presenters.states import submission_badge
from leaderboard.views.presenters.text import log_text
from leaderboard.views.presenters.timing import TimingView, timing_view
from leaderboard.views.presenters.words import VERDICTS, Badge, Meaning
from leaderboard.views.presenters.workers import environment_rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """What an open submission waits for, in words: its place and who could take it."""

    lane: str
    position: int | None
    able_count: int
    text: str


@dataclass(frozen=True, kw_only=True)
class SubmissionView:
    """Everything is derived from rows that the view has fetched; nothing here asks the database."""

    submission: Submission
    job: Job | None
    attempts: Sequence[Attempt]
    records: Sequence[StageRecord]
    evaluation: Evaluation | None
    waiting: Waiting | None

    @property
    def badge(self) -> Badge:
        return submission_badge(self.submission)

    @property
    def meaning(self) -> Meaning | None:
        return VERDICTS[self.submission.verdict] if self.submission.verdict else None

    @cached_property
    def results(self) -> tuple[AnyStageResult, ...]:
        return tuple(record.result for record in self.records)

    @cached_property
    def stages(self) -> dict[str, AnyStageResult]:
        """Results by stage name, for templates."""
        return {result.stage.value: result for result in self.results}

    @cached_property
    def rungs(self) -> tuple[Rung, ...]:
        planned = planned_stages(is_gpu=self.submission.target_record.is_gpu)
        return ladder(planned, self.results, self._progress)

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

    @property
    def compiler_log(self) -> str:
        result = self.stages.get(Stage.COMPILATION.value)
        return log_text(result.evidence.log) if result and result.evidence else ""

    @cached_property
    def timing(self) -> TimingView | None:
        evidence = self._timing_evidence
        return timing_view(evidence) if evidence else None

    @cached_property
    def chart(self) -> Chart | None:
        evidence = self._timing_evidence
        return samples_chart(evidence) if evidence and evidence.samples else None

    @property
    def _timing_evidence(self) -> TimingEvidence | None:
        result = self.stages.get(Stage.TIMING.value)
        evidence = result.evidence if result else None
        return evidence if isinstance(evidence, TimingEvidence) else None

    @property
    def environments(self) -> tuple[tuple[Attempt, tuple[tuple[str, str | None], ...]], ...]:
        return tuple(
            (one, environment_rows(one.environment)) for one in self.attempts if one.environment
        )

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


def submission_view(submission: Submission) -> SubmissionView:
    """The newest job of a submission with its attempts, records and evaluation; four queries."""
    job = submission.jobs.order_by("-number").first()
    attempts = list(job.attempts.order_by("created_at", "id")) if job else []
    return SubmissionView(
        submission=submission,
        job=job,
        attempts=attempts,
        records=_records(attempts),
        evaluation=submission.evaluation,
        waiting=waiting_for(submission, attempts),
    )


def _records(attempts: Sequence[Attempt]) -> list[StageRecord]:
    """The newest record of each stage: a later attempt's counts, an earlier one's is history."""
    rows = (
        StageRecord.objects.filter(attempt__in=attempts)
        .prefetch_related("stage_artifacts__artifact")
        .order_by("id")
    )
    newest = {row.stage: row for row in rows}
    return [newest[stage.value] for stage in Stage if stage.value in newest]


def waiting_for(submission: Submission, attempts: Sequence[Attempt]) -> Waiting | None:
    """None unless the newest attempt is queued."""
    attempt = attempts[-1] if attempts else None
    if not submission.is_open or attempt is None or attempt.state != Attempt.State.QUEUED:
        return None
    online = Worker.objects.online(timezone.now())
    able = sum(worker.can_run(attempt.lane, attempt.target) for worker in online)
    before = Attempt.objects.queued().filter(
        lane=attempt.lane, target=attempt.target, created_at__lt=attempt.created_at
    )
    position = before.count() + 1
    return Waiting(
        lane=attempt.lane,
        position=position,
        able_count=able,
        text=_waiting_text(attempt, position, able, submission),
    )


def _waiting_text(attempt: Attempt, position: int, able: int, submission: Submission) -> str:
    target = submission.target_record
    if able:
        workers = "1 worker can run this" if able == 1 else f"{able} workers can run this"
        return f"Number {position} in the queue; {workers}."
    if attempt.lane == Job.Lane.BUILD:
        return "No build worker is online. The build starts as soon as one connects."
    if not target.runs_here:
        return f"{target.title} has never run here: your build verdict is below, the run waits."
    return f"No {target.title} worker is online: your build verdict is below, the run waits."
