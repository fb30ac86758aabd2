"""The words of a result: stages, verdicts, and who is to blame for each."""

from enum import StrEnum


class Stage(StrEnum):
    """The steps of an evaluation, in the order in which they run."""

    POLICY = "policy"
    COMPILATION = "compilation"
    SASS = "sass"
    SANITIZER = "sanitizer"
    CORRECTNESS = "correctness"
    COUNTERS = "counters"
    TIMING = "timing"


class Lane(StrEnum):
    """Where a stage runs: `build` on any CPU worker, `gpu` on a worker of the target."""

    BUILD = "build"
    GPU = "gpu"


class Verdict(StrEnum):
    """What was found. All but INCONCLUSIVE are the author's; a fault of ours has no verdict."""

    PASSED = "PASSED"
    COMPILE_ERROR = "COMPILE_ERROR"
    ENTRY_POINT_MISSING = "ENTRY_POINT_MISSING"
    BANNED_LIBRARY = "BANNED_LIBRARY"
    SANITIZER_ERROR = "SANITIZER_ERROR"
    RUNTIME_ERROR = "RUNTIME_ERROR"
    TIMEOUT = "TIMEOUT"
    OUT_OF_MEMORY = "OUT_OF_MEMORY"
    INCORRECT_SHAPE = "INCORRECT_SHAPE"
    INCORRECT_DTYPE = "INCORRECT_DTYPE"
    INCORRECT_NUMERICAL = "INCORRECT_NUMERICAL"
    INPUT_MUTATED = "INPUT_MUTATED"
    OUT_OF_BOUNDS_WRITE = "OUT_OF_BOUNDS_WRITE"
    NO_KERNEL = "NO_KERNEL"
    TIMING_DISPUTED = "TIMING_DISPUTED"
    INCONCLUSIVE = "INCONCLUSIVE"


class InstructionStatus(StrEnum):
    """Whether target-architecture instructions ran; `unknown` is never counted as a no."""

    EXECUTED = "executed"
    ABSENT = "absent"
    NOT_EXECUTED = "not_executed"
    UNKNOWN = "unknown"


class Tier(StrEnum):
    """How much a matched target instruction says: arithmetic, data movement, or only control."""

    MMA = "mma"
    PAYLOAD = "payload"
    CONTROL = "control"


class EvaluatorFault(Exception):
    """Our failure, never the candidate's: the attempt is faulted and run again.

    The message says what was seen, what was expected, and what the operator can do.
    """
