"""The stage ladder: what each planned stage found, or why it did not run."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from evaluator.records.summary import LANE_OF
from evaluator.records.verdicts import Lane, Stage, Verdict
from leaderboard.models import StageRecord
from leaderboard.views.presenters.states import CANCELLED, QUEUED, RUNNING
from leaderboard.views.presenters.words import STAGES, Badge, verdict_badge

BAR_WIDTH = 192.0
NOT_REACHED = Badge(
    word="Not reached", icon="dash", tone="idle", title="An earlier stage ended it."
)
WAITING = Badge(word="Waiting", icon="clock", tone="idle", title="Comes after the stages above.")
NOT_MEASURED = Badge(
    word="Not measured",
    icon="tool",
    tone="ours",
    title="Our infrastructure failed before this stage ended.",
)
STOPPED = {"FAULTED": NOT_MEASURED, "CANCELLED": CANCELLED}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """Where a stage's work lies among all the work done, as SVG numbers; waits are left out."""

    x: str
    width: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    number: int
    stage: Stage
    name: str
    lane: Lane
    badge: Badge
    message: str
    duration_ns: int | None
    bar: Bar | None
    has_details: bool

    @property
    def is_pending(self) -> bool:
        return not self.has_details


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Where the open attempt is; all empty once a job has ended."""

    state: str
    current_stage: str = ""
    waiting_lane: str = ""


def ladder(
    planned: Sequence[Stage], records: Iterable[StageRecord], progress: Progress
) -> tuple[Rung, ...]:
    """Reads columns only: a poll every two seconds must not parse megabytes of evidence."""
    by_stage = {Stage(record.stage): record for record in records}
    bars = _bars([by_stage[stage] for stage in planned if stage in by_stage])
    ended = any(record.verdict != Verdict.PASSED.value for record in by_stage.values())
    return tuple(
        _rung(number, stage, by_stage.get(stage), bars.get(stage), ended, progress)
        for number, stage in enumerate(planned, 1)
    )


def _rung(
    number: int,
    stage: Stage,
    record: StageRecord | None,
    bar: Bar | None,
    ended: bool,
    progress: Progress,
) -> Rung:
    return Rung(
        number=number,
        stage=stage,
        name=STAGES[stage][0],
        lane=LANE_OF[stage],
        badge=verdict_badge(record.verdict) if record else _absent(stage, ended, progress),
        message=record.message if record else "",
        duration_ns=duration_ns(record) if record else None,
        bar=bar,
        has_details=record is not None,
    )


def _absent(stage: Stage, ended: bool, progress: Progress) -> Badge:
    if ended or progress.state == "DONE":
        return NOT_REACHED
    if progress.state in STOPPED:
        return STOPPED[progress.state]
    if stage.value == progress.current_stage:
        return RUNNING
    return QUEUED if LANE_OF[stage].value == progress.waiting_lane else WAITING


def duration_ns(record: StageRecord) -> int | None:
    if record.started_at is None or record.ended_at is None:
        return None
    return int((record.ended_at - record.started_at).total_seconds() * 1e9)


def _bars(records: Sequence[StageRecord]) -> dict[Stage, Bar]:
    spans = [(Stage(record.stage), duration_ns(record) or 0) for record in records]
    total, before, bars = sum(span for _, span in spans), 0, {}
    for stage, span in spans:
        if total and span:
            width = max(1.5, BAR_WIDTH * span / total)
            x = min(BAR_WIDTH * before / total, BAR_WIDTH - width)
            bars[stage] = Bar(x=f"{x:.1f}", width=f"{width:.1f}")
        before += span
    return bars
