"""A turn as a tile of a grid, as a row of its trajectory, and as a page of its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from django.utils.safestring import SafeString

from evaluator.agent.extraction import ExtractionState
from evaluator.records.evidence import CountersEvidence, InstructionCount
from evaluator.records.verdicts import InstructionStatus, Verdict
from leaderboard.models import ModelRun, Trajectory, Turn
from leaderboard.views.presenters.diffs import Diff, diff
from leaderboard.views.presenters.prompts import Said, added, conversation
from leaderboard.views.presenters.run_words import (
    EXCLUDED,
    EXTRACTIONS,
    JUDGING,
    SHORT_EXTRACTIONS,
    SHORT_VERDICTS,
)
from leaderboard.views.presenters.sources import MAX_SHOWN_BYTES, highlighted
from leaderboard.views.presenters.submissions import SubmissionView, submission_view
from leaderboard.views.presenters.words import INSTRUCTIONS, Badge, verdict_badge

MAX_SHOWN_CHARACTERS = 40_000
"""Of each part of a turn: the page stays light, and the whole is one link away."""

INSTRUCTION_WORDS: dict[str, str] = {
    "": "",
    InstructionStatus.EXECUTED.value: "target instructions executed",
    InstructionStatus.ABSENT.value: "no target instructions",
    InstructionStatus.NOT_EXECUTED.value: "target instructions not executed",
    InstructionStatus.UNKNOWN.value: "target instructions unknown",
}


def turn_badge(turn: Turn) -> Badge:
    """What came of a turn, in one badge."""
    if turn.excluded:
        return EXCLUDED
    if turn.verdict:
        return verdict_badge(turn.verdict)
    if turn.extraction_state == ExtractionState.EXTRACTED:
        return JUDGING
    return EXTRACTIONS[ExtractionState(turn.extraction_state)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tile:
    """`label` is the whole sentence for mouse and screen reader; `url` is "" where no turn is."""

    badge: Badge
    text: str
    label: str
    url: str = ""
    executed: bool = False
    meets_target: bool = False
    is_here: bool = False


def turn_tile(turn: Turn, run: ModelRun, *, here: Turn | None = None) -> Tile:
    badge = turn_badge(turn)
    told = [f"turn {turn.number}: {badge.word}"]
    if turn.speedup is not None:
        told.append(f"{turn.speedup:.3f} times the baseline's speed")
    told += [word for word in (INSTRUCTION_WORDS.get(turn.instruction_status, ""),) if word]
    return Tile(
        badge=badge,
        text=_tile_text(turn),
        label=", ".join(told),
        url=turn.get_absolute_url(),
        executed=turn.instruction_status == InstructionStatus.EXECUTED.value,
        meets_target=turn.speedup is not None and turn.speedup >= run.target_speedup,
        is_here=here is not None and here.pk == turn.pk,
    )


def _tile_text(turn: Turn) -> str:
    if turn.excluded:
        return "ours"
    if turn.speedup is not None:
        return f"{turn.speedup:.2f}×"  # noqa: RUF001
    if turn.verdict:
        return SHORT_VERDICTS[Verdict(turn.verdict)]
    if turn.extraction_state == ExtractionState.EXTRACTED:
        return "judging"
    return SHORT_EXTRACTIONS[ExtractionState(turn.extraction_state)]


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnRow:
    """A turn in its trajectory's column."""

    turn: Turn
    badge: Badge
    duration_ns: int

    @property
    def instructions(self) -> Badge | None:
        """None where nothing was counted."""
        status = self.turn.instruction_status
        return INSTRUCTIONS[InstructionStatus(status)] if status else None


def turn_row(turn: Turn) -> TurnRow:
    return TurnRow(turn=turn, badge=turn_badge(turn), duration_ns=call_ns(turn))


def call_ns(turn: Turn) -> int:
    """How long the model took to answer."""
    return max(0, int((turn.replied_at - turn.called_at).total_seconds() * 1e9))


@dataclass(frozen=True, slots=True, kw_only=True)
class Sums:
    """Over every turn of a trajectory, excluded ones included; None: nobody told."""

    best_speedup: float | None
    prompt_tokens: int | None
    completion_tokens: int | None
    cost_usd: float | None
    excluded: int


def sums(turns: Sequence[Turn]) -> Sums:
    passed = [one.speedup for one in turns if one.speedup is not None and not one.excluded]
    prompt = [one.prompt_tokens for one in turns if one.prompt_tokens is not None]
    completion = [one.completion_tokens for one in turns if one.completion_tokens is not None]
    costs = [one.cost_usd for one in turns if one.cost_usd is not None]
    return Sums(
        best_speedup=max(passed, default=None),
        prompt_tokens=sum(prompt) if prompt else None,
        completion_tokens=sum(completion) if completion else None,
        cost_usd=sum(costs) if costs else None,
        excluded=sum(one.excluded for one in turns),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The beginning of a text; the whole has `total` characters."""

    text: str
    total: int

    @property
    def is_cut(self) -> bool:
        return len(self.text) < self.total


def shown(text: str) -> Shown:
    return Shown(text=text[:MAX_SHOWN_CHARACTERS], total=len(text))


@dataclass(frozen=True, slots=True, kw_only=True)
class Message:
    """One message of the prompt; `is_rest`: it grew, and this is what came to it."""

    number: int
    role: str
    is_rest: bool
    part: Shown

    @property
    def label(self) -> str:
        return f"Message {self.number}"


def prompt_messages(said: Sequence[Said]) -> tuple[Message, ...]:
    return tuple(
        Message(number=number, role=one.role, is_rest=one.is_rest, part=shown(one.text))
        for number, one in enumerate(said, 1)
    )


@dataclass(frozen=True, kw_only=True)
class TurnView:
    """`siblings` are the trajectory's turns in order, light; `earlier` the last one with code."""

    turn: Turn
    siblings: Sequence[Turn]
    earlier: Turn | None
    submission: SubmissionView | None

    @property
    def run(self) -> ModelRun:
        return self.turn.trajectory.run

    @property
    def trajectory(self) -> Trajectory:
        return self.turn.trajectory

    @property
    def badge(self) -> Badge:
        return turn_badge(self.turn)

    @property
    def extraction(self) -> Badge:
        return EXTRACTIONS[ExtractionState(self.turn.extraction_state)]

    @property
    def rail(self) -> tuple[Tile, ...]:
        return tuple(turn_tile(one, self.run, here=self.turn) for one in self.siblings)

    @cached_property
    def _place(self) -> int:
        return next(n for n, one in enumerate(self.siblings) if one.pk == self.turn.pk)

    @property
    def previous(self) -> Turn | None:
        return self.siblings[self._place - 1] if self._place else None

    @property
    def next(self) -> Turn | None:
        later = self.siblings[self._place + 1 :]
        return later[0] if later else None

    @property
    def lacks_parent(self) -> bool:
        """The turn before is not here, so nothing can be said about what was added."""
        return self.turn.number > 1 and self.turn.parent_id is None

    @cached_property
    def conversation(self) -> tuple[Said, ...]:
        return conversation(self.turn.request_bytes)

    @cached_property
    def added(self) -> tuple[Message, ...]:
        parent = self.turn.parent
        before = conversation(parent.request_bytes) if parent else ()
        return prompt_messages(added(self.conversation, before))

    @property
    def answer(self) -> Shown:
        return shown(self.turn.answer)

    @property
    def reasoning(self) -> Shown:
        return shown(self.turn.reasoning)

    @property
    def feedback(self) -> Shown:
        return shown(self.turn.feedback)

    @property
    def call_ns(self) -> int:
        return call_ns(self.turn)

    @cached_property
    def diff(self) -> Diff | None:
        """None where there is nothing to compare with."""
        before, after = self.earlier.source if self.earlier else None, self.turn.source
        return None if before is None or after is None else diff(before, after)

    @property
    def code(self) -> SafeString | None:
        source = self.turn.source
        return None if source is None else _code(source, self.turn)

    @property
    def code_is_cut(self) -> bool:
        return len(self.turn.source or "") > MAX_SHOWN_BYTES

    @cached_property
    def counted(self) -> tuple[InstructionCount, ...]:
        """Target instructions of the kernel with their executions; empty where none was counted."""
        found = (result.evidence for result in self.submission.results) if self.submission else ()
        counters = next((one for one in found if isinstance(one, CountersEvidence)), None)
        return counters.instructions if counters else ()

    def named_digest(self, digest: str) -> str:
        """What of this turn has that SHA-256, in words; "" where nothing has."""
        turn = self.turn
        known = {
            turn.previous_digest: "the link before",
            turn.request_digest: "the request's bytes",
            turn.call_digest: "the call",
            turn.digest: "the outcome",
            turn.call_record["reply_digest"]: "the reply, as canonical JSON",
            turn.call_record["answer_digest"]: "the answer, as canonical JSON",
            turn.call_record["reasoning_digest"]: "the reasoning, as canonical JSON",
        }
        return known.get(digest.strip().lower(), "") if digest.strip() else ""

    @property
    def chain_holds(self) -> bool:
        """The digests are those of what is stored; an open turn has no second one yet."""
        turn = self.turn
        first = turn.call_digest == turn.computed_call_digest
        return first and (not turn.digest or turn.digest == turn.computed_digest)


def _code(source: str, turn: Turn) -> SafeString:
    python = turn.submission is not None and turn.submission.language == "triton"
    language = "python" if python else "cpp"
    return highlighted(source[:MAX_SHOWN_BYTES], language=language, anchor="k")


def turn_view(turn: Turn) -> TurnView:
    """Four queries and those of the submission; `turn` comes with parent and submission."""
    siblings = list(Turn.objects.filter(trajectory=turn.trajectory_id).for_grid())
    with_code = [
        one
        for one in siblings
        if one.number < turn.number and not one.excluded and one.submission_id is not None
    ]
    earlier = (
        Turn.objects.for_grid().select_related("submission").get(pk=with_code[-1].pk)
        if with_code
        else None
    )
    view = submission_view(turn.submission) if turn.submission else None
    return TurnView(turn=turn, siblings=siblings, earlier=earlier, submission=view)
