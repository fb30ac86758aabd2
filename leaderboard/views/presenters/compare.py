"""Two to four kernels side by side: facts, stages, samples, and what their sources differ in."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from django.utils.html import format_html
from django.utils.safestring import SafeString

from evaluator.records.evidence import CompilationEvidence, TimingEvidence
from evaluator.records.verdicts import Stage
from leaderboard.charts.strips import Strips, strips_chart
from leaderboard.models import Submission
from leaderboard.services.resources import Resources, resources_of
from leaderboard.templatetags import marks, units
from leaderboard.views.presenters.boards import peak_share
from leaderboard.views.presenters.diffs import Diff, diff
from leaderboard.views.presenters.ladder import Rung
from leaderboard.views.presenters.states import submission_badge
from leaderboard.views.presenters.submissions import SubmissionView, submission_view
from leaderboard.views.presenters.words import STAGES

LETTERS = ("a", "b", "c", "d")


@dataclass(frozen=True, kw_only=True)
class Side:
    """One kernel; `letter` is its place in the address."""

    letter: str
    number: int
    view: SubmissionView

    @property
    def submission(self) -> Submission:
        return self.view.submission

    @cached_property
    def timing(self) -> TimingEvidence | None:
        found = (result.evidence for result in self.view.results)
        return next((one for one in found if isinstance(one, TimingEvidence)), None)

    @cached_property
    def resources(self) -> Resources | None:
        found = (result.evidence for result in self.view.results)
        built = next((one for one in found if isinstance(one, CompilationEvidence)), None)
        return resources_of([one.model_dump() for one in built.kernels]) if built else None

    @property
    def source(self) -> str:
        """Every file, each under its name where there are several."""
        sources = self.submission.candidate.sources
        if len(sources) == 1:
            return sources[0].content
        return "\n".join(f"// ---- {one.path}\n{one.content}" for one in sources)


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A fact of every side, in order."""

    title: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRow:
    name: str
    rungs: tuple[Rung | None, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """From the leftmost kernel's source to another's."""

    before: Side
    after: Side
    diff: Diff


@dataclass(frozen=True, kw_only=True)
class Comparison:
    sides: tuple[Side, ...]

    @property
    def differs_in(self) -> str:
        """What makes the times incomparable; "" where nothing does."""
        problems = {one.submission.problem.measured_digest for one in self.sides}
        targets = {one.submission.target for one in self.sides}
        told = ["problems"] * (len(problems) > 1) + ["targets"] * (len(targets) > 1)
        return " and ".join(told)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        return tuple(
            Row(title=title, cells=tuple(cell(side, self) for side in self.sides))
            for title, cell in FACTS
        )

    @property
    def stages(self) -> tuple[StageRow, ...]:
        found = [{rung.stage: rung for rung in side.view.rungs} for side in self.sides]
        return tuple(
            StageRow(name=STAGES[stage][0], rungs=tuple(rungs.get(stage) for rungs in found))
            for stage in Stage
            if any(stage in rungs for rungs in found)
        )

    @cached_property
    def strips(self) -> Strips | None:
        """Every timed call, where the times may be compared."""
        if self.differs_in:
            return None
        timed = [
            (side.letter.upper(), side.number, [one.span_ns for one in side.timing.samples])
            for side in self.sides
            if side.timing
        ]
        return strips_chart(timed)

    @cached_property
    def differences(self) -> tuple[Difference, ...]:
        first = self.sides[0]
        return tuple(
            Difference(before=first, after=other, diff=diff(first.source, other.source))
            for other in self.sides[1:]
        )


def comparison(submissions: Sequence[Submission]) -> Comparison:
    return Comparison(
        sides=tuple(
            Side(letter=letter, number=number, view=submission_view(one))
            for number, (letter, one) in enumerate(zip(LETTERS, submissions, strict=False))
        )
    )


def _speedup(side: Side, whole: Comparison) -> str:
    seen = side.view.evaluation
    if seen is None or seen.speedup is None:
        return marks.unknown("only a kernel that passed has a speedup")
    return format_html(
        '<strong>{}</strong> <span class="quiet">{}&ndash;{}</span>',
        units.speedup(seen.speedup),
        units.ratio(seen.speedup_low),
        units.ratio(seen.speedup_high),
    )


def _against_first(side: Side, whole: Comparison) -> str:
    first, seen = whole.sides[0].view.evaluation, side.view.evaluation
    if side is whole.sides[0]:
        return "—"
    if whole.differs_in:
        return marks.unknown(f"the {whole.differs_in} differ")
    if not (first and seen and first.speedup and seen.speedup):
        return marks.unknown("one of the two has no speedup")
    overlap = seen.speedup_low <= first.speedup_high and first.speedup_low <= seen.speedup_high
    note = "the intervals overlap" if overlap else ""
    return format_html(
        '{} <span class="quiet">{}</span>', units.speedup(seen.speedup / first.speedup), note
    )


def _latency(side: Side, whole: Comparison) -> str:
    seen = side.view.evaluation
    if seen is None or seen.latency_ns is None:
        return marks.unknown("only a kernel that passed is timed for the board")
    return format_html(
        '{} <span class="quiet">±{}, {} calls</span>',
        units.duration(seen.latency_ns),
        units.percent(seen.noise),
        seen.sample_count,
    )


def _rate(side: Side, whole: Comparison) -> str:
    seen, one = side.view.evaluation, side.submission
    if seen is None or seen.latency_ns is None:
        return marks.unknown("it was not timed")
    share = peak_share(one.problem.flop_count, seen.latency_ns, one.target_record)
    note = f"{units.percent(share)} of peak" if share is not None else ""
    rate = units.flops(side.view.flops_per_second)
    return format_html('{} <span class="quiet">{}</span>', rate, note)


def _instructions(side: Side, whole: Comparison) -> str:
    found = side.view.instructions
    if found is None:
        return marks.unknown("no evidence of target instructions")
    note = f"tier {found.tier}" if found.tier else found.reason
    return format_html('{} <span class="quiet">{}</span>', marks.badge(found.badge), note)


def _work_share(side: Side, whole: Comparison) -> str:
    found = side.view.instructions
    if found is None or found.work_share is None:
        return marks.unknown(found.work_share_reason if found else "nothing was counted")
    return format_html("{}{}", marks.meter(found.work_share), units.percent(found.work_share))


def _registers(side: Side, whole: Comparison) -> str:
    found = side.resources
    if found is None:
        return marks.unknown("its build recorded none")
    spills = "spills" if found.spills else "no spills"
    shared = units.file_size(found.shared_bytes)
    return format_html(
        '{} <span class="quiet">{}, {} static shared</span>', found.registers, spills, shared
    )


def _entrant(side: Side, whole: Comparison) -> SafeString:
    return format_html("<bdi>{}</bdi>", marks.text.visible(side.submission.entrant.display_name))


def _trust(side: Side, whole: Comparison) -> str:
    seen = side.view.evaluation
    return marks.trust_badge(seen.trust) if seen else marks.unknown("it has no evaluation")


FACTS: tuple[tuple[str, Callable[[Side, Comparison], str]], ...] = (
    ("Verdict", lambda side, _: marks.badge(submission_badge(side.submission))),
    ("Speedup", _speedup),
    ("Against A", _against_first),
    ("Latency", _latency),
    ("Rate", _rate),
    ("Target instructions", _instructions),
    ("Work share", _work_share),
    ("Registers", _registers),
    ("Problem", lambda side, _: side.submission.problem.name),
    ("Target", lambda side, _: side.submission.target),
    ("Language", lambda side, _: f"{side.submission.language}, {side.submission.binding}"),
    ("Entrant", _entrant),
    ("Trust", _trust),
    ("Submitted", lambda side, _: units.instant(side.submission.created_at)),
)
