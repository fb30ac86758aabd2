"""What states of runs, trajectories and turns are called, in full and as short as a tile needs."""

from evaluator.agent.extraction import ExtractionState
from evaluator.records.verdicts import Verdict
from leaderboard.models import ModelRun, Trajectory
from leaderboard.views.presenters.words import Badge

RUN_STATES: dict[ModelRun.State, Badge] = {
    ModelRun.State.QUEUED: Badge(
        word="Queued", icon="clock", tone="idle", title="No call has been made yet."
    ),
    ModelRun.State.RUNNING: Badge(
        word="Running", icon="spin", tone="live", title="The model is asked and kernels are judged."
    ),
    ModelRun.State.PAUSED: Badge(
        word="Paused", icon="pause", tone="unsure", title="No call is made until it is resumed."
    ),
    ModelRun.State.DONE: Badge(
        word="Done", icon="check", tone="pass", title="Every trajectory has ended."
    ),
    ModelRun.State.CANCELLED: Badge(
        word="Cancelled", icon="dash", tone="idle", title="Ended by its owner; its turns stay."
    ),
    ModelRun.State.FAULTED: Badge(
        word="Faulted", icon="tool", tone="ours", title="It could not go on; its turns stay."
    ),
}

TRAJECTORY_STATES: dict[Trajectory.State, Badge] = {
    Trajectory.State.WAITING: Badge(
        word="Waiting", icon="clock", tone="idle", title="Its next call has not begun."
    ),
    Trajectory.State.CALLING: Badge(
        word="Asking", icon="spin", tone="live", title="The model is answering."
    ),
    Trajectory.State.EVALUATING: Badge(
        word="Judging", icon="spin", tone="live", title="Its newest kernel is being evaluated."
    ),
}
HELD = Badge(word="Paused", icon="pause", tone="unsure", title="Its owner paused it.")

ENDINGS: dict[Trajectory.Ending, Badge] = {
    Trajectory.Ending.TARGET_MET: Badge(
        word="Target met", icon="check", tone="pass", title="A turn reached the target speedup."
    ),
    Trajectory.Ending.TURNS_USED: Badge(
        word="Turns used", icon="dash", tone="idle", title="All planned turns were taken."
    ),
    Trajectory.Ending.OUT_OF_CONTEXT: Badge(
        word="Out of context",
        icon="ban",
        tone="unsure",
        title="The conversation no longer fits the model's context.",
    ),
    Trajectory.Ending.BUDGET: Badge(
        word="Budget", icon="ban", tone="unsure", title="The run's budget is used up."
    ),
    Trajectory.Ending.CANCELLED: Badge(
        word="Cancelled", icon="dash", tone="idle", title="Cancelled by its owner."
    ),
    Trajectory.Ending.ENDPOINT_ERROR: Badge(
        word="Endpoint error", icon="cross", tone="fail", title="The endpoint refused to go on."
    ),
    Trajectory.Ending.INFRA: Badge(
        word="Infrastructure",
        icon="tool",
        tone="ours",
        title="Our failure: the turns that it could not take are in no denominator.",
    ),
}

EXTRACTIONS: dict[ExtractionState, Badge] = {
    ExtractionState.EXTRACTED: Badge(
        word="Code found", icon="check", tone="idle", title="One kernel was taken from the answer."
    ),
    ExtractionState.EMPTY: Badge(
        word="Empty answer", icon="cross", tone="fail", title="The model answered nothing."
    ),
    ExtractionState.REASONING_ONLY: Badge(
        word="Reasoning only", icon="cross", tone="fail", title="It reasoned, but gave no answer."
    ),
    ExtractionState.NO_CODE: Badge(
        word="No code", icon="cross", tone="fail", title="The answer holds no block of code."
    ),
    ExtractionState.TRUNCATED: Badge(
        word="Truncated", icon="cross", tone="fail", title="The answer was cut off."
    ),
    ExtractionState.NO_ENTRY_POINT: Badge(
        word="No entry point", icon="cross", tone="fail", title="No block defines the entry point."
    ),
    ExtractionState.SEVERAL_FILES: Badge(
        word="Several files", icon="cross", tone="fail", title="The answer spreads over files."
    ),
    ExtractionState.TOO_LARGE: Badge(
        word="Too large", icon="cross", tone="fail", title="The code is beyond the size limit."
    ),
}

EXCLUDED = Badge(
    word="Excluded",
    icon="tool",
    tone="ours",
    title="Lost to infrastructure and repeated: it is in no denominator.",
)
JUDGING = Badge(word="Judging", icon="spin", tone="live", title="Its kernel is being evaluated.")

SHORT_VERDICTS: dict[Verdict, str] = {
    Verdict.PASSED: "passed",
    Verdict.COMPILE_ERROR: "compile",
    Verdict.ENTRY_POINT_MISSING: "no entry",
    Verdict.BANNED_LIBRARY: "banned",
    Verdict.SANITIZER_ERROR: "sanitizer",
    Verdict.RUNTIME_ERROR: "runtime",
    Verdict.TIMEOUT: "timeout",
    Verdict.OUT_OF_MEMORY: "memory",
    Verdict.INCORRECT_SHAPE: "shape",
    Verdict.INCORRECT_DTYPE: "dtype",
    Verdict.INCORRECT_NUMERICAL: "wrong",
    Verdict.INPUT_MUTATED: "mutated",
    Verdict.OUT_OF_BOUNDS_WRITE: "bounds",
    Verdict.NO_KERNEL: "no kernel",
    Verdict.TIMING_DISPUTED: "disputed",
    Verdict.INCONCLUSIVE: "noisy",
}

SHORT_EXTRACTIONS: dict[ExtractionState, str] = {
    ExtractionState.EXTRACTED: "code",
    ExtractionState.EMPTY: "empty",
    ExtractionState.REASONING_ONLY: "no answer",
    ExtractionState.NO_CODE: "no code",
    ExtractionState.TRUNCATED: "cut off",
    ExtractionState.NO_ENTRY_POINT: "no entry",
    ExtractionState.SEVERAL_FILES: "files",
    ExtractionState.TOO_LARGE: "too large",
}
