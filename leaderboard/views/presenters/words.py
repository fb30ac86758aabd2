"""What verdicts, states and stages are called, what they mean, and what to do next.

The rules page, the badges and the error texts read this one table, so they cannot disagree.
"""

from dataclasses import dataclass

from evaluator.records.verdicts import InstructionStatus, Stage, Tier, Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Badge:
    """`tone` is a colour by meaning (`pass`, `fail`, `unsure`, `ours`, `live`, `idle`)."""

    word: str
    icon: str
    tone: str
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    word: str
    meaning: str
    next_step: str


VERDICTS: dict[Verdict, Meaning] = {
    Verdict.PASSED: Meaning(
        word="Passed",
        meaning="Every planned stage passed; the measured time ranks on the board.",
        next_step="Look at the noise and at the share of peak to see what is left to gain.",
    ),
    Verdict.COMPILE_ERROR: Meaning(
        word="Compile error",
        meaning="The compiler or the linker refused the sources, or ran past its time limit.",
        next_step="Read the first error in the compiler log; its line numbers are your file's.",
    ),
    Verdict.ENTRY_POINT_MISSING: Meaning(
        word="Entry point missing",
        meaning="The built library does not export the entry point, or not as the binding wants.",
        next_step='Copy the prototype from the problem page; the c binding needs extern "C".',
    ),
    Verdict.BANNED_LIBRARY: Meaning(
        word="Banned library",
        meaning="A vendor or template library that this problem does not allow did the work, or "
        "device code that was not compiled here.",
        next_step="Remove the header, library or embedded device code that the message names.",
    ),
    Verdict.SANITIZER_ERROR: Meaning(
        word="Sanitizer error",
        meaning="Compute-sanitizer's memcheck found an invalid or misaligned access, or a leak of "
        "an error code.",
        next_step="The first fault names kernel, file and line; run memcheck on it.",
    ),
    Verdict.RUNTIME_ERROR: Meaning(
        word="Runtime error",
        meaning="The candidate's process crashed, or CUDA returned an error.",
        next_step="Read the process's last output; check launch bounds and shared memory sizes.",
    ),
    Verdict.TIMEOUT: Meaning(
        word="Timeout",
        meaning="The candidate did not finish inside the stage's time limit and was killed.",
        next_step="Look for a wait that is never satisfied, or for far too much work per call.",
    ),
    Verdict.OUT_OF_MEMORY: Meaning(
        word="Out of memory",
        meaning="The candidate asked for more device or host memory than the sandbox gives.",
        next_step="Allocate less scratch memory, or reuse it between calls.",
    ),
    Verdict.INCORRECT_SHAPE: Meaning(
        word="Wrong shape",
        meaning="An output has another shape than the problem's definition says.",
        next_step="Compare the outputs table of the problem with what the kernel writes.",
    ),
    Verdict.INCORRECT_DTYPE: Meaning(
        word="Wrong dtype",
        meaning="An output has another element type than the problem's definition says.",
        next_step="Compare the outputs table of the problem with what the kernel writes.",
    ),
    Verdict.INCORRECT_NUMERICAL: Meaning(
        word="Wrong result",
        meaning="At least one element is outside the tolerance, unwritten, or NaN or infinite "
        "where the reference is finite.",
        next_step="The error table names the output, the first bad index and both values.",
    ),
    Verdict.INPUT_MUTATED: Meaning(
        word="Input mutated",
        meaning="An input buffer held other bytes after the call than before it.",
        next_step="Write to the outputs and to your own scratch memory only.",
    ),
    Verdict.OUT_OF_BOUNDS_WRITE: Meaning(
        word="Out-of-bounds write",
        meaning="The guard bands around an output were overwritten.",
        next_step="Check the last tile of each dimension; guards lie right before and after.",
    ),
    Verdict.NO_KERNEL: Meaning(
        word="No kernel",
        meaning="A call launched nothing on the device.",
        next_step="Each call must do its work on the stream that it is given.",
    ),
    Verdict.TIMING_DISPUTED: Meaning(
        word="Timing disputed",
        meaning="The judge's own clock contradicts the reported device times, a timed call's "
        "output was wrong, or the time is below the problem's physical bound.",
        next_step="Compare the batches table: wall time per call against the reported span.",
    ),
    Verdict.INCONCLUSIVE: Meaning(
        word="Inconclusive",
        meaning="The measurement was too noisy to rank. Nobody's fault; it is measured again, "
        "at most twice.",
        next_step="Nothing to do. If it stays, submit again at another time.",
    ),
}

_ICONS: dict[Verdict, str] = {
    Verdict.PASSED: "check",
    Verdict.BANNED_LIBRARY: "ban",
    Verdict.TIMEOUT: "clock",
    Verdict.TIMING_DISPUTED: "flag",
    Verdict.INCONCLUSIVE: "wave",
}

INFRA_ERROR = Badge(
    word="Infrastructure error",
    icon="tool",
    tone="ours",
    title="Our failure, not the kernel's: no verdict, no cost to your quota.",
)


def verdict_badge(verdict: Verdict | str) -> Badge:
    """The badge of a verdict; the title tells its meaning."""
    known = Verdict(verdict)
    tone = {
        Verdict.PASSED: "pass",
        Verdict.INCONCLUSIVE: "unsure",
        Verdict.TIMING_DISPUTED: "unsure",
    }
    return Badge(
        word=VERDICTS[known].word,
        icon=_ICONS.get(known, "cross"),
        tone=tone.get(known, "fail"),
        title=f"{known.value}: {VERDICTS[known].meaning}",
    )


STAGES: dict[Stage, tuple[str, str]] = {
    Stage.POLICY: (
        "Policy",
        "The compiler itself lists every header that the build would open; headers of banned "
        "libraries are refused. Text is never searched, so comments and macros do not matter.",
    ),
    Stage.COMPILATION: (
        "Compilation",
        "One build, in a sandbox without network. The very library built here is inspected, "
        "profiled and timed; its digest is checked at each step.",
    ),
    Stage.SASS: (
        "SASS",
        "The machine code is disassembled and instructions of the target's families are counted. "
        "This proves presence, not execution.",
    ),
    Stage.SANITIZER: (
        "Sanitizer",
        "Compute-sanitizer's memcheck runs the kernel once on exact-size allocations.",
    ),
    Stage.CORRECTNESS: (
        "Correctness",
        "Three trials with fresh secret inputs, in another process than the judge: shape, dtype, "
        "every element written, every element inside the tolerance, inputs and guards untouched.",
    ),
    Stage.COUNTERS: (
        "Counters",
        "Nsight Compute counts how often each target instruction ran. An unknown count stays "
        "unknown and is never read as a yes or a no.",
    ),
    Stage.TIMING: (
        "Timing",
        "Three trials of fifty calls with a cold L2 cache, CUPTI spans checked against the judge's "
        "own clock, interleaved with the tuned baseline.",
    ),
}


INSTRUCTIONS: dict[InstructionStatus, Badge] = {
    InstructionStatus.EXECUTED: Badge(
        word="executed", icon="check", tone="pass", title="Target instructions ran when profiled."
    ),
    InstructionStatus.ABSENT: Badge(
        word="absent", icon="dash", tone="idle", title="No target instruction in the binary."
    ),
    InstructionStatus.NOT_EXECUTED: Badge(
        word="not executed",
        icon="ban",
        tone="unsure",
        title="Target instructions are in the binary but never ran.",
    ),
    InstructionStatus.UNKNOWN: Badge(
        word="unknown", icon="question", tone="idle", title="Could not be determined."
    ),
}

TIERS: dict[Tier, str] = {
    Tier.MMA: "arithmetic on the tensor cores",
    Tier.PAYLOAD: "bulk data movement",
    Tier.CONTROL: "control only: no arithmetic and no data moved",
}

TRUST: dict[str, Badge] = {
    "reproduced": Badge(
        word="reproduced",
        icon="double",
        tone="pass",
        title="Measured by our workers twice, on two workers or days, within tolerance.",
    ),
    "verified": Badge(word="verified", icon="check", tone="pass", title="Measured by our workers."),
    "self-reported": Badge(
        word="self-reported",
        icon="upload",
        tone="unsure",
        title="Uploaded results; nobody measured them here.",
    ),
    "published": Badge(
        word="published",
        icon="page",
        tone="idle",
        title="Figures from a paper, for comparison; never ranked among measured ones.",
    ),
}
