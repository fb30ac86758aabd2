"""What a model is told about a turn: facts from our records, the useful ones first, bounded.

Whatever a candidate can write (compiler lines, kernel names, its output) is quoted in a fenced
block that its content cannot close. Nothing is read out of it.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from evaluator.agent.advice import ANSWER, FOR_EXTRACTION, FOR_VERDICT
from evaluator.agent.extraction import Extraction, ExtractionState
from evaluator.agent.faults import fault_sections
from evaluator.agent.sections import Section, compose
from evaluator.agent.speed import instructions_section, limits_section, time_section
from evaluator.records.evaluation import AnyStageResult, EvidenceT
from evaluator.records.evidence import (
    CompilationEvidence,
    CountersEvidence,
    SassEvidence,
    TimingEvidence,
)
from evaluator.records.problem import Problem
from evaluator.records.summary import Summary, planned_stages, summarise
from evaluator.records.verdicts import InstructionStatus, Verdict
from evaluator.targets import Target

FEEDBACK_BYTES = 8 << 10
MESSAGE_BYTES = 1500


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Where a trajectory stands: `turn` of `turns` (from 1) is the one that the feedback is about.

    best_speedup  of the turns before; None where none was correct
    """

    turn: int
    turns: int
    target_speedup: float
    best_speedup: float | None = None


def feedback_of(
    outcome: Extraction | Sequence[AnyStageResult],
    *,
    problem: Problem,
    target: Target,
    standing: Standing,
    source: str = "",
) -> str | None:
    """At most FEEDBACK_BYTES of UTF-8; None where there is no verdict: the turn is excluded.

    outcome  the extraction where it gave no source, else the stage results of the evaluation, as
             `stage_result_from_json` reads them
    source   the submitted text, to quote the lines that a fault names

    Raises ValueError for an extraction that did give a source: its evaluation is what counts.
    """
    if isinstance(outcome, Extraction):
        return _of_extraction(outcome, standing)
    summary = summarise(outcome, planned_stages(is_gpu=target.is_gpu))
    if summary.verdict is None:
        return None
    sections = [
        Section(title="", quote=summary.message, most_bytes=MESSAGE_BYTES),
        *_advice(summary.verdict),
        *_details(outcome, summary, problem, target, standing, source),
        _stages(outcome, summary),
    ]
    best = summary.score.speedup if summary.score else None
    head = _head(summary.verdict.value, standing)
    return compose(head, sections, _tail(standing, best), limit_bytes=FEEDBACK_BYTES)


def _of_extraction(extraction: Extraction, standing: Standing) -> str:
    if extraction.state is ExtractionState.EXTRACTED:
        raise ValueError("feedback on an extracted source is feedback on its evaluation")
    sections = [
        Section(title="", quote=extraction.message, most_bytes=MESSAGE_BYTES),
        Section(title="", lines=(FOR_EXTRACTION[extraction.state],)),
    ]
    head = _head(extraction.state.value, standing)
    return compose(head, sections, _tail(standing, None), limit_bytes=FEEDBACK_BYTES)


def _head(outcome: str, standing: Standing) -> str:
    return f"# Turn {standing.turn} of {standing.turns}: {outcome}\n"


def _tail(standing: Standing, speedup: float | None) -> str:
    """How it stands, and what to send next."""
    reached = [value for value in (standing.best_speedup, speedup) if value is not None]
    best = f"best speedup so far {max(reached):.3f}" if reached else "no speedup counted so far"
    goal = f"target speedup {standing.target_speedup:g}"
    left = standing.turns - standing.turn
    turns = "1 turn is left" if left == 1 else f"{left} turns are left"
    text = f"{best[0].upper()}{best[1:]}, {goal}; {turns}."
    if reached and max(reached) >= standing.target_speedup:
        return f"{text} The target is reached."
    return f"{text} {ANSWER}" if left else text


def _advice(verdict: Verdict) -> list[Section]:
    text = FOR_VERDICT.get(verdict)
    return [Section(title="", lines=(text,))] if text else []


def _details(
    results: Sequence[AnyStageResult],
    summary: Summary,
    problem: Problem,
    target: Target,
    standing: Standing,
    source: str,
) -> list[Section]:
    """A failed stage's evidence first; then time, limits and instructions as far as known."""
    sections = [
        section
        for result in results
        if not result.passed
        for section in fault_sections(result, source)
    ]
    timing = _evidence(results, TimingEvidence)
    if summary.score and timing:
        goal = standing.target_speedup
        sections.append(time_section(summary.score, timing, problem, target, goal))
    if summary.verdict in (Verdict.PASSED, Verdict.INCONCLUSIVE):
        build = _evidence(results, CompilationEvidence)
        limits = limits_section(build, timing, summary.target_instructions)
        sections += [limits] if limits else []
    return [*sections, *_instructions(results, summary, target)]


def _instructions(
    results: Sequence[AnyStageResult], summary: Summary, target: Target
) -> list[Section]:
    """Nothing where they are in the binary and it was not yet measured whether they ran."""
    seen, counters = summary.target_instructions, _evidence(results, CountersEvidence)
    if seen is None or not target.families:
        return []
    if counters is None and seen.status is not InstructionStatus.ABSENT:
        return []
    sass = _evidence(results, SassEvidence)
    return [instructions_section(seen, sass, counters, target.families)]


def _evidence(results: Sequence[AnyStageResult], kind: type[EvidenceT]) -> EvidenceT | None:
    found = (one.evidence for one in results if isinstance(one.evidence, kind))
    return next(found, None)


def _stages(results: Sequence[AnyStageResult], summary: Summary) -> Section:
    told = [f"{result.stage.value} {result.verdict.value}" for result in results]
    text = f"Stages: {', '.join(told)}."
    if summary.not_reached:
        text += f" Not reached: {', '.join(summary.not_reached)}."
    return Section(title="", lines=(text,))
