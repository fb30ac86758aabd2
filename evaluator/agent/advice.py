"""What to do next, in one or two sentences, for every way in which a turn can end."""

from evaluator.agent.extraction import ExtractionState
from evaluator.records.verdicts import InstructionStatus, Verdict

ANSWER = "Answer with the whole source file in one fenced block."

FOR_EXTRACTION = {
    ExtractionState.EMPTY: "No text arrived, so nothing was built.",
    ExtractionState.REASONING_ONLY: (
        "Your reasoning took the whole answer, so nothing was built; code inside reasoning is "
        "never taken. Reason less and write the file."
    ),
    ExtractionState.NO_CODE: (
        "No code was found, so nothing was built. Only fenced blocks are read, and blocks of "
        "shell commands, diffs or logs are not."
    ),
    ExtractionState.TRUNCATED: (
        "Your answer ended before the file did, so nothing was built: an earlier block is not "
        "taken in place of an unfinished one. Write less around the code, or shorter code."
    ),
    ExtractionState.NO_ENTRY_POINT: (
        "Nothing was built, because no block defines the entry point with the prototype of the "
        "task. Comments and strings do not count."
    ),
    ExtractionState.SEVERAL_FILES: (
        "One file is built, so nothing was: put everything into a single block, the contents of "
        "your own headers included."
    ),
    ExtractionState.TOO_LARGE: (
        "Nothing was built. Use loops, templates or macros in place of repeated text."
    ),
}

FOR_VERDICT = {
    Verdict.COMPILE_ERROR: "Mend the first error first; later ones often follow from it.",
    Verdict.ENTRY_POINT_MISSING: (
        "It was built, but the entry point is not exported under its name: define it once, with "
        "the prototype of the task."
    ),
    Verdict.BANNED_LIBRARY: (
        "Libraries that do the work are not allowed, whatever the result: neither their headers "
        "nor their functions. Write the computation yourself."
    ),
    Verdict.SANITIZER_ERROR: (
        "An access to memory was invalid. Check index ranges and partial tiles, shared-memory "
        "sizes against the launch, alignment, and the boxes and strides of tensor maps."
    ),
    Verdict.RUNTIME_ERROR: (
        "The process or the device failed during the call. Check the result of every CUDA and "
        "driver call, the launch's shared-memory opt-in, descriptors and alignment."
    ),
    Verdict.TIMEOUT: (
        "It did not end in time. Look for a wait that nothing completes (an mbarrier's phase "
        "parity, its arrival count or its expected bytes) and for loops without an end."
    ),
    Verdict.OUT_OF_MEMORY: (
        "It asked for more memory than there is. Inputs and outputs are allocated already; "
        "allocate scratch once and keep it small."
    ),
    Verdict.INCORRECT_SHAPE: "An output has another shape than the task says.",
    Verdict.INCORRECT_DTYPE: "An output has another type than the task says.",
    Verdict.INCORRECT_NUMERICAL: (
        "It ran, but the numbers are wrong. Look at where the first wrong element lies in your "
        "tiles, and at layouts, scale factors, and synchronisation before reads."
    ),
    Verdict.INPUT_MUTATED: "Inputs are const: write to outputs and to scratch of your own only.",
    Verdict.OUT_OF_BOUNDS_WRITE: (
        "It wrote beside an output or input. Check partial tiles and the strides of every store."
    ),
    Verdict.NO_KERNEL: "A call launched nothing: every call must compute its outputs again.",
    Verdict.TIMING_DISPUTED: (
        "The reported time is not counted. All work of a call must run on the given stream, be "
        "the same in every call, and end with the call."
    ),
    Verdict.INCONCLUSIVE: (
        "Up to here it is correct, but the time could not be measured well enough. This is not "
        "held against you, and no speedup is counted."
    ),
}

FOR_INSTRUCTIONS = {
    InstructionStatus.ABSENT: (
        "The binary holds no instruction of the required families, so this turn is no "
        "target-instruction turn, however fast it is."
    ),
    InstructionStatus.NOT_EXECUTED: (
        "Instructions of the required families are in the binary, but no thread executed one "
        "during the call: launch the kernel that has them, on the path that is really taken."
    ),
    InstructionStatus.UNKNOWN: (
        "Whether they ran could not be found out. It counts neither as a yes nor as a no."
    ),
}
CONTROL_ONLY = (
    "Only control instructions of the families ran: no matrix arithmetic and no data movement. "
    "A commit or an allocation alone does no work."
)
