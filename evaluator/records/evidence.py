"""What each stage measured. Judges decide from these alone; pages and bundles show them.

Times are integer nanoseconds unless a mean makes them fractional; noise and shares are fractions;
unknown is None with a reason beside it.
"""

from enum import StrEnum

from pydantic import Field

from evaluator.records.base import Record
from evaluator.records.problem import Baseline, Tolerance
from evaluator.records.verdicts import InstructionStatus, Tier


class Artifact(Record):
    """Bytes kept by their SHA-256; `role` tells what they are (`library`, `cubin`, `log`, ...)."""

    role: str
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    byte_count: int = Field(ge=0)


class Ending(StrEnum):
    """How a process of the candidate's ended."""

    FINISHED = "finished"
    CRASHED = "crashed"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    DEVICE_ERROR = "device_error"


class ProcessReport(Record):
    """A sandboxed process as its parent saw it; `output_tail` is quoted, never parsed."""

    command: tuple[str, ...]
    ending: Ending
    exit_code: int | None = None
    signal: int | None = None
    duration_ns: int
    detail: str = ""
    output_tail: str = ""
    output_truncated: bool = False
    mapped_libraries: tuple[str, ...] = ()
    sandboxed: bool = True


class PolicyEvidence(Record):
    """Headers of a compiled source; of a Triton source its imports and refused names."""

    command: tuple[str, ...]
    header_count: int
    author_headers: tuple[str, ...] = ()
    banned_headers: tuple[str, ...] = ()
    unavailable_headers: tuple[str, ...] = ()
    log: str = ""


class KernelLaunch(Record):
    """A kernel or copy as a profiler named it; order and streams do not matter to equality."""

    kind: str
    name: str
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    count: int = 1


class KernelResources(Record):
    """ptxas -v, one line per kernel and architecture; the last two are known for Triton."""

    name: str
    registers: int
    spill_store_bytes: int = 0
    spill_load_bytes: int = 0
    stack_bytes: int = 0
    static_shared_bytes: int = 0
    dynamic_shared_bytes: int | None = None
    cubin_sha256: str | None = None


class CompilationEvidence(Record):
    process: ProcessReport
    compiler_version: str
    log: str
    log_truncated: bool
    log_byte_count: int
    cache_key: str
    cache_hit: bool
    kernels: tuple[KernelResources, ...] = ()
    entry_symbol: str
    exported_symbols: tuple[str, ...] = ()
    needed_libraries: tuple[str, ...] = ()
    banned_symbols: tuple[str, ...] = ()
    banned_libraries: tuple[str, ...] = ()
    unresolved_symbols: tuple[str, ...] = ()
    foreign_device_code: tuple[str, ...] = Field(
        default=(), description="device code outside of the section where the compiler puts it"
    )
    library: Artifact | None = None
    cubin: Artifact | None = None
    launches: tuple[KernelLaunch, ...] = Field(default=(), description="traced, of Triton only")


class OpcodeCount(Record):
    opcode: str
    count: int


class SassMatch(Record):
    """One target-family instruction row of the disassembly."""

    function: str
    address: int
    opcode: str
    text: str
    family: str
    tier: Tier


class SassEvidence(Record):
    cubin_sha256: str
    tool_version: str
    families: tuple[str, ...]
    functions: tuple[str, ...]
    opcode_counts: tuple[OpcodeCount, ...]
    matches: tuple[SassMatch, ...]
    match_count: int
    literal_match: bool
    tier: Tier | None
    listing: Artifact | None = None


class SanitizerFault(Record):
    kind: str
    kernel: str | None = None
    source_file: str | None = None
    source_line: int | None = None
    text: str = ""


class SanitizerEvidence(Record):
    tool: str
    tool_version: str
    process: ProcessReport
    completed: bool
    error_count: int | None
    error_exit: int = Field(default=99, description="the tool's exit code where it found errors")
    refusal: str = Field(default="", description="why the tool's report could not be taken")
    first_fault: SanitizerFault | None
    report: str
    report_truncated: bool


class OutputError(Record):
    """How one output of one trial differs from the reference; None where nothing was finite.

    nonfinite_count       elements with a NaN or infinity on either side that do not match
    reference_nan_count   NaN in the reference: the problem's fault, never the candidate's
    smallest_passing_atol None where no atol can help, that is where nonfinite_count is not 0
    rms_error_to_fp32     RMS(actual - fp32) / RMS(fp32), a fraction
    constant_ratio        actual / expected where that is one number all over and not 1
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    element_count: int
    unwritten_count: int
    nonfinite_count: int
    bad_count: int
    first_bad_index: tuple[int, ...] | None = None
    first_bad_expected: float | None = None
    first_bad_actual: float | None = None
    max_abs_error: float | None = None
    max_rel_error: float | None = None
    smallest_passing_atol: float | None = None
    rms_error_to_fp32: float | None = None
    constant_ratio: float | None = None
    reference_nan_count: int = 0


class CorrectnessTrial(Record):
    trial: int
    outputs: tuple[OutputError, ...]
    mutated_inputs: tuple[str, ...] = ()
    broken_guards: tuple[str, ...] = ()


class CorrectnessEvidence(Record):
    process: ProcessReport
    tolerance: Tolerance
    planned_trials: int
    trials: tuple[CorrectnessTrial, ...]
    library_sha256: str
    repeat_differs: bool | None = None


class InstructionCount(Record):
    function: str
    address: int
    opcode: str
    text: str
    family: str
    tier: Tier
    warp_executions: int
    thread_executions: int


class CountersEvidence(Record):
    status: InstructionStatus
    reason: str
    tool_version: str | None = None
    process: ProcessReport | None = None
    launches: tuple[KernelLaunch, ...] = ()
    instructions: tuple[InstructionCount, ...] = ()
    tier: Tier | None = None
    target_flop_count: int | None = None
    problem_flop_count: int | None = None
    work_share: float | None = None
    work_share_reason: str | None = None
    report: Artifact | None = None
    library_sha256: str | None = None


class DeviceReading(Record):
    sm_clock_hz: int | None = None
    temperature_celsius: float | None = None
    power_watts: float | None = None
    throttle_reasons: tuple[str, ...] = ()


class TimingSample(Record):
    """One timed call: span = first start to last end on all streams; wall is the judge's clock."""

    trial: int
    call: int
    span_ns: int
    busy_ns: int
    wall_ns: int
    launch_count: int
    stray_count: int = Field(default=0, description="device records outside every call's window")
    unstamped_count: int = Field(default=0, description="device records without timestamps")
    reading: DeviceReading | None = None


class BatchBracket(Record):
    """Back-to-back calls between two readings of the judge's own clock.

    `wall_ns` is without `copying_ns`: what the judge's own copies of the inputs and outputs take,
    which lie between the readings too.
    """

    trial: int
    call_count: int
    wall_ns: int
    copying_ns: int = 0
    warm_span_ns: int | None = None

    @property
    def wall_per_call_ns(self) -> float:
        return self.wall_ns / self.call_count


class VerifiedCall(Record):
    """A randomly chosen timed call whose outputs were checked afterwards."""

    trial: int
    call: int
    bad_count: int
    output: str | None = None
    mutated_inputs: tuple[str, ...] = ()
    broken_guards: tuple[str, ...] = ()


class TimingEvidence(Record):
    timer: str
    process: ProcessReport
    planned_trials: int
    planned_calls: int
    warmup_calls: int
    samples: tuple[TimingSample, ...]
    baseline: Baseline
    baseline_version: str
    baseline_samples: tuple[TimingSample, ...]
    batches: tuple[BatchBracket, ...]
    verified: tuple[VerifiedCall, ...]
    launches: tuple[KernelLaunch, ...]
    launch_sets: int
    kernel_symbols: tuple[str, ...] = Field(
        default=(), description="every kernel seen between the calls and in them, as it is mangled"
    )
    flush_bytes: int
    library_sha256: str
    noise_limit: float
    speed_of_light_ns: float | None
    tolerated_batch_excess: float
    tolerated_batch_excess_ns: float
    tolerated_bracket_ns: float = Field(default=0.0, description="once a bracket, not a call")
    latency_ns: float | None = None
    baseline_latency_ns: float | None = None
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    noise: float | None = Field(default=None, description="the speedup is known to +- this share")
    spread: float | None = Field(default=None, description="of the candidate's own samples")
    baseline_spread: float | None = None
    baseline_alone_ns: float | None = Field(
        default=None, description="median of calls before the candidate was loaded"
    )
    tolerated_baseline_excess: float | None = Field(
        default=None, description="how much slower than alone the baseline may be, a share"
    )
