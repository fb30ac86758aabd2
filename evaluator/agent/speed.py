"""What a model is told of a kernel that ran: time, what limits it, and the target instructions."""

from collections import Counter
from collections.abc import Sequence
from statistics import median

from evaluator.agent.advice import CONTROL_ONLY, FOR_INSTRUCTIONS
from evaluator.agent.sections import Section
from evaluator.diagnosis import remarks
from evaluator.records.evaluation import Score, TargetInstructions
from evaluator.records.evidence import (
    CompilationEvidence,
    CountersEvidence,
    KernelLaunch,
    KernelResources,
    SassEvidence,
    TimingEvidence,
)
from evaluator.records.problem import Problem
from evaluator.records.verdicts import InstructionStatus, Tier
from evaluator.targets import Target

KERNELS_NAMED = 8
OPCODES_NAMED = 8
NAME_CHARACTERS = 100
IDLE_SHARE = 0.05
WORK_SHARE = 0.9


def time_section(
    score: Score, timing: TimingEvidence, problem: Problem, target: Target, target_speedup: float
) -> Section:
    latency_us, baseline_us = score.latency_ns / 1e3, score.baseline_latency_ns / 1e3
    wanted_us = baseline_us / target_speedup
    lines = [
        f"- {latency_us:.1f} us a call; {timing.baseline.name} takes {baseline_us:.1f} us: "
        f"speedup {score.speedup:.3f} "
        f"(95 % interval {score.speedup_low:.3f} to {score.speedup_high:.3f}).",
        f"- A speedup of {target_speedup:g} needs {wanted_us:.1f} us or less.",
        *_rates(score.latency_ns, problem, target),
    ]
    if timing.speed_of_light_ns is not None:
        lines.append(f"- The hardware's bound is {timing.speed_of_light_ns / 1e3:.1f} us.")
    return Section(title="Time", lines=tuple(lines))


def _rates(latency_ns: float, problem: Problem, target: Target) -> list[str]:
    """Achieved rates over the problem's own operations and bytes, beside the data sheet's."""
    lines = []
    if target.peak_flops is not None:
        rate = problem.flop_count / (latency_ns * 1e-9)
        share = rate / target.peak_flops
        peak = target.peak_flops / 1e12
        lines.append(f"- {rate / 1e12:.1f} TFLOP/s, {share:.0%} of the peak of {peak:.0f}.")
    if target.memory_bandwidth is not None:
        rate = problem.byte_count / (latency_ns * 1e-9)
        share = rate / target.memory_bandwidth
        lines.append(
            f"- {rate / 1e9:.0f} GB/s with every input and output moved once, {share:.0%} of the "
            f"bandwidth of {target.memory_bandwidth / 1e9:.0f}."
        )
    return lines


def limits_section(
    build: CompilationEvidence | None,
    timing: TimingEvidence | None,
    instructions: TargetInstructions | None,
) -> Section | None:
    """What build, profile and timed calls show as a limit; None if they show nothing."""
    lines = [*_build_limits(build), *_launch_limits(timing), *_work_limits(instructions)]
    quote = [*(remarks(build.log) if build else ()), *_kernel_rows(build, timing)]
    if not lines and not quote:
        return None
    return Section(
        title="What limits it, as far as we measured",
        lines=tuple(lines),
        quote="\n".join(quote),
        most_bytes=3000,
    )


def _build_limits(build: CompilationEvidence | None) -> list[str]:
    kernels = build.kernels if build else ()
    spilling = [kernel for kernel in kernels if kernel.spill_store_bytes or kernel.spill_load_bytes]
    if not spilling:
        return []
    stores = sum(kernel.spill_store_bytes for kernel in spilling)
    loads = sum(kernel.spill_load_bytes for kernel in spilling)
    return [
        f"- {len(spilling)} of {len(kernels)} kernels spill registers to local memory "
        f"({stores} bytes of stores, {loads} bytes of loads): make tiles smaller, or give the "
        "warps more registers."
    ]


def _launch_limits(timing: TimingEvidence | None) -> list[str]:
    samples = timing.samples if timing else ()
    if not samples:
        return []
    span_ns = median(sample.span_ns for sample in samples)
    busy_ns = median(sample.busy_ns for sample in samples)
    launches = round(median(sample.launch_count for sample in samples))
    idle = 1 - busy_ns / span_ns if span_ns else 0.0
    lines = [f"- Launches, copies and memsets in a call: {launches}."]
    if idle >= IDLE_SHARE:
        lines.append(f"- The device is idle for {idle:.0%} of a call: gaps between launches.")
    readings = [reason for one in samples if one.reading for reason in one.reading.throttle_reasons]
    if readings:
        reasons = ", ".join(sorted(set(readings)))
        lines.append(f"- The clock was lowered during some calls: {reasons}.")
    return lines


def _work_limits(instructions: TargetInstructions | None) -> list[str]:
    share = instructions.work_share if instructions else None
    if share is None or share >= WORK_SHARE:
        return []
    return [
        f"- Only {share:.0%} of the problem's arithmetic went through the target's matrix "
        "instructions; the rest ran elsewhere."
    ]


def _kernel_rows(build: CompilationEvidence | None, timing: TimingEvidence | None) -> list[str]:
    resources = [_resources_text(kernel) for kernel in (build.kernels if build else ())]
    launches = [_launch_text(launch) for launch in (timing.launches if timing else ())]
    return [*resources[:KERNELS_NAMED], *launches[:KERNELS_NAMED]]


def _resources_text(kernel: KernelResources) -> str:
    return (
        f"{kernel.registers} registers a thread, {kernel.spill_store_bytes} bytes spilled, "
        f"{kernel.static_shared_bytes} bytes static shared: {kernel.name[:NAME_CHARACTERS]}"
    )


def _launch_text(launch: KernelLaunch) -> str:
    size = f" grid {launch.grid} block {launch.block}" if launch.grid and launch.block else ""
    return f"{launch.kind} x{launch.count}{size}: {launch.name[:NAME_CHARACTERS]}"


def instructions_section(
    seen: TargetInstructions,
    sass: SassEvidence | None,
    counters: CountersEvidence | None,
    families: Sequence[str],
) -> Section:
    """Whether the required families ran, how much they did, and which opcodes."""
    lines = [f"Required: {', '.join(families)}. Status: {seen.status.value}."]
    if seen.status in FOR_INSTRUCTIONS:
        lines.append(FOR_INSTRUCTIONS[seen.status])
    if seen.tier is Tier.CONTROL and seen.status is InstructionStatus.EXECUTED:
        lines.append(CONTROL_ONLY)
    elif seen.tier:
        lines.append(f"Highest kind: {seen.tier.value}.")
    if seen.work_share is not None:
        lines.append(f"Share of the problem's arithmetic that they did: {seen.work_share:.2f}.")
    quote = [text for text in (seen.reason, seen.work_share_reason) if text]
    quote = list(dict.fromkeys(quote))
    return Section(
        title="Target instructions",
        lines=tuple(lines),
        quote="\n".join([*quote, *_opcodes(sass, counters)]),
    )


def _opcodes(sass: SassEvidence | None, counters: CountersEvidence | None) -> list[str]:
    """Executions by opcode where they were counted, else how often each stands in the binary."""
    counts: Counter[str] = Counter()
    if counters and counters.instructions:
        for row in counters.instructions:
            counts[row.opcode] += row.warp_executions
        what = "executed by warps"
    elif sass and sass.matches:
        counts.update(match.opcode for match in sass.matches)
        what = "in the binary"
    else:
        return []
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:OPCODES_NAMED]
    return [f"{opcode}: {count} {what}" for opcode, count in ordered]
