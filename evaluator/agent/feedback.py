"""What a model is told about a turn: facts from our records, the useful ones first, bounded."""

from collections.abc import Sequence
from dataclasses import dataclass

from evaluator.agent.extraction import Extraction
from evaluator.records.evaluation import AnyStageResult
from evaluator.records.problem import Problem
from evaluator.targets import Target

FEEDBACK_BYTES = 8 << 10


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
    """
    raise NotImplementedError


