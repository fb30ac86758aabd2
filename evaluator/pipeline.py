"""The loop over stages: in order, stamped, stopped at the first that did not pass."""

import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib import import_module
from types import ModuleType

from evaluator.bench import Bench
from evaluator.records.evaluation import AnyStageResult
from evaluator.records.summary import LANE_OF, planned_stages
from evaluator.records.verdicts import EvaluatorFault, Lane, Stage
from evaluator.work import Work

__all__ = ["STAGES", "Bench", "run_lane", "stages_of"]

STAGES: tuple[Stage, ...] = tuple(Stage)
"""Each stage is the module of its name in `evaluator.stages`, with `run(work, bench)`."""


def stages_of(work: Work, lane: Lane) -> tuple[Stage, ...]:
    """What the lane runs for this target, in order, without what was done before."""
    return tuple(
        stage
        for stage in planned_stages(is_gpu=work.target.is_gpu)
        if LANE_OF[stage] is lane and work.result(stage) is None
    )


def run_lane(work: Work, bench: Bench, lane: Lane) -> Iterator[AnyStageResult]:
    """Yield each stage's result as it ends; end early after a stage that did not pass.

    Also ends early, between stages, when the work was cancelled.
    Raises EvaluatorFault for every failure of ours, an unforeseen exception with its traceback.
    """
    if any(not result.passed for result in work.results):
        return
    for stage in stages_of(work, lane):
        if work.cancelled():
            return
        result = _run_stage(stage, work, bench)
        work = work.with_result(result)
        yield result
        if not result.passed:
            return


def _run_stage(stage: Stage, work: Work, bench: Bench) -> AnyStageResult:
    started_at = datetime.now(UTC)
    try:
        result: AnyStageResult = _module(stage).run(work, bench)
    except EvaluatorFault:
        raise
    except Exception as error:
        text = traceback.format_exc(limit=-12)
        raise EvaluatorFault(f"{stage.value}: {type(error).__name__}: {error}\n{text}") from error
    if result.stage is not stage:
        raise EvaluatorFault(f"{stage.value}: the stage returned a result of {result.stage.value}")
    return result.model_copy(update={"started_at": started_at, "ended_at": datetime.now(UTC)})


def _module(stage: Stage) -> ModuleType:
    """Imported when first needed: a build worker has no torch, which the GPU stages import."""
    return import_module(f"evaluator.stages.{stage.value}")
