"""The problem as a model is told it: definition, sizes, how it is judged, goal and budget."""

import json
from collections.abc import Sequence
from math import prod

from evaluator.agent.quoting import cleaned, fenced
from evaluator.problems.prototypes import Parameter, axis_sizes, parameters
from evaluator.records.flashinfer import Definition
from evaluator.records.problem import Problem
from evaluator.targets import Arch, Target

MEMCHECK = "compute-sanitizer's memcheck over one call: no error at all."
C_BUILD = (
    "Policy: the headers that the compiler really opens, the linked libraries, and the libraries "
    "that are mapped at run time.",
    "Compilation.",
)
TRITON_BUILD = (
    "Policy: what the file imports and calls.",
    "Compilation: the file is run once without a GPU, and the kernels that it launches are "
    "compiled for the target.",
)
TRIALS = 3
GPU_CALLS, GPU_WARMUP = 50, 10
HOST_CALLS, HOST_WARMUP = 20, 3
GUARD_KIB = 64
HIDDEN_FIELDS = ("tags", "reference")
FIELD_ORDER = ("name", "op_type", "description", "axes", "constraints", "inputs", "outputs")

PTX_OF_FAMILY = {
    "GMMA": "matrix arithmetic of a warpgroup (`wgmma.mma_async`)",
    "UTMALDG": "tensor loads into shared memory (`cp.async.bulk.tensor` from global)",
    "UTMASTG": "tensor stores from shared memory (`cp.async.bulk.tensor` to global)",
    "UTMAREDG": "tensor reductions to global memory (`cp.reduce.async.bulk.tensor`)",
    "UTC": "matrix arithmetic and copies in tensor memory (`tcgen05.mma`, `tcgen05.cp`)",
    "LDTM": "loads from tensor memory (`tcgen05.ld`)",
    "STTM": "stores to tensor memory (`tcgen05.st`)",
}


def definition_text(definition: Definition) -> str:
    """JSON without tags and reference; equal definitions give equal text, however stored."""
    value = definition.model_dump(mode="json")
    names = [name for name in FIELD_ORDER if name in value]
    names += sorted(name for name in value if name not in (*FIELD_ORDER, *HIDDEN_FIELDS))
    ordered = {name: _sorted(value[name], keep=name in ("inputs", "outputs")) for name in names}
    return json.dumps(ordered, indent=2, ensure_ascii=False)


def _sorted(value: object, *, keep: bool) -> object:
    """Members by name, but inputs and outputs as they come: that is the call order."""
    if not isinstance(value, dict):
        return value
    names = list(value) if keep else sorted(value)
    return {name: _sorted(value[name], keep=False) for name in names}


def problem_section(problem: Problem) -> str:
    reference = fenced(cleaned(problem.definition.reference), "python")
    return "\n".join(
        [
            f"# Task: {cleaned(problem.title)}",
            "",
            fenced(definition_text(problem.definition), "json"),
            "",
            "What is right is what this reference says; its values are compared with yours:",
            "",
            reference,
            "",
        ]
    )


def sizes_section(problem: Problem) -> str:
    sizes = ", ".join(f"{name} = {size}" for name, size in sorted(axis_sizes(problem).items()))
    return "\n".join(
        [
            "## Sizes of this workload",
            "",
            f"{sizes}. All tensors are row-major and contiguous.",
            "",
            "| parameter | role | type | shape |",
            "| --- | --- | --- | --- |",
            *(_row(item) for item in parameters(problem)),
            "",
            f"{problem.flop_count:.4g} floating-point operations; inputs and outputs hold "
            f"{problem.byte_count} bytes.",
            "",
        ]
    )


def _row(item: Parameter) -> str:
    role = "output" if item.is_output else "input"
    pairs = zip(item.axes, item.shape, strict=True)
    extents = ", ".join(f"{axis}={size}" for axis, size in pairs)
    shape = "scalar" if item.is_scalar else f"[{extents}], {prod(item.shape)} elements"
    return f"| {item.name} | {role} | {item.dtype.value} | {shape} |"


def judging_section(problem: Problem, target: Target, language: str) -> str:
    """The gates in the order in which they run; the first that fails ends the turn."""
    gates = _gates(problem, target, language)
    numbered = [f"{number}. {text}" for number, text in enumerate(gates, start=1)]
    head = "## How it is judged\n\nIn this order; the first failure ends the turn.\n"
    return "\n".join([head, *numbered, ""])


def _gates(problem: Problem, target: Target, language: str) -> Sequence[str]:
    tolerance = problem.tolerance
    limit = f"|out - ref| <= {tolerance.atol:g} + {tolerance.rtol:g} * |ref|"
    calls, warmup = (GPU_CALLS, GPU_WARMUP) if target.is_gpu else (HOST_CALLS, HOST_WARMUP)
    clock = "GPU activity records (CUPTI)" if target.is_gpu else "the wall clock"
    return [
        *(TRITON_BUILD if language == "triton" else C_BUILD),
        *([MEMCHECK] if target.is_gpu else []),
        f"Correctness: {TRIALS} trials on fresh secret inputs; {limit} for every element of "
        "every output, no NaN or infinity where the reference has none. Inputs are hashed before "
        f"and after the call, and {GUARD_KIB} KiB around each tensor are guarded.",
        *(["Profile: which of the required instructions ran."] if target.families else []),
        f"Time: {TRIALS} trials of {warmup} warm-up and {calls} timed calls with cold caches; "
        f"by {clock}, from the first start to the last end over all streams; the mean of the "
        "trials' medians counts. Outputs of timed calls picked at random are checked, and an "
        "independent clock must agree.",
    ]


def goal_section(problem: Problem, target: Target, *, target_speedup: float, turns: int) -> str:
    """Baseline, bound, required instructions, target speedup, and how many turns there are."""
    baseline = problem.baseline
    lines = [
        "## Goal",
        "",
        f"- Speedup = latency of {cleaned(baseline.name)} (`{cleaned(baseline.call)}`), measured "
        "in turn with yours, over your latency.",
        f"- The target is a speedup of {target_speedup:g}: a turn that reaches it ends the task.",
        f"- There are {turns} turns. After each you get what was found. The best correct turn "
        "counts, and so does how many turns are correct.",
    ]
    bound_us = _bound_us(problem, target)
    if bound_us is not None:
        lines.append(f"- By the data sheet no call can take less than {bound_us:.1f} us.")
    return "\n".join([*lines, "", *_instructions(target)])


def _bound_us(problem: Problem, target: Target) -> float | None:
    if target.peak_flops is None or target.memory_bandwidth is None:
        return None
    seconds = max(
        problem.flop_count / target.peak_flops, problem.byte_count / target.memory_bandwidth
    )
    return seconds * 1e6


def _instructions(target: Target) -> list[str]:
    if not target.families:
        return []
    architecture = {Arch.HOPPER: "Hopper", Arch.BLACKWELL: "Blackwell"}[target.arch]
    rows = [f"- {name}: {PTX_OF_FAMILY[name]}" for name in target.families]
    return [
        "## Required instructions",
        "",
        f"The kernel has to do its work with instructions of {architecture}'s own, of at least "
        "one of these families in the machine code:",
        "",
        *rows,
        "",
        "A turn counts as a target-instruction turn only if Nsight Compute saw one of them "
        "execute in a call, with its predicate true. How much of the arithmetic they did is "
        "measured too: one for show is seen as such. Prefetches and commits alone do not count. "
        "Without them a turn can still be correct and fast, which is recorded apart.",
        "",
    ]
