"""From stage results to verdict, target instructions and score. Pure: site and shell agree."""

from collections.abc import Sequence
from dataclasses import dataclass

from evaluator import SCORING_VERSION
from evaluator.records.evaluation import AnyStageResult, Score, TargetInstructions
from evaluator.records.evidence import (
    CountersEvidence,
    KernelLaunch,
    SassEvidence,
    TimingEvidence,
)
from evaluator.records.verdicts import InstructionStatus, Lane, Stage, Verdict

LANE_OF: dict[Stage, Lane] = {
    Stage.POLICY: Lane.BUILD,
    Stage.COMPILATION: Lane.BUILD,
    Stage.SASS: Lane.BUILD,
    Stage.SANITIZER: Lane.GPU,
    Stage.CORRECTNESS: Lane.GPU,
    Stage.COUNTERS: Lane.GPU,
    Stage.TIMING: Lane.GPU,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """`verdict` is None while stages of the plan are still to come."""

    verdict: Verdict | None
    message: str
    target_instructions: TargetInstructions | None
    score: Score | None
    not_reached: tuple[Stage, ...]


def planned_stages(*, is_gpu: bool) -> tuple[Stage, ...]:
    """Every stage on a GPU target; on `host` those that need no GPU."""
    if is_gpu:
        return tuple(Stage)
    return (Stage.POLICY, Stage.COMPILATION, Stage.CORRECTNESS, Stage.TIMING)


def summarise(results: Sequence[AnyStageResult], planned: Sequence[Stage]) -> Summary:
    """The first stage that did not pass decides; passed only when every planned stage passed."""
    by_stage = {result.stage: result for result in results}
    failed = next((result for result in results if not result.passed), None)
    missing = tuple(stage for stage in planned if stage not in by_stage)
    last = failed or (results[-1] if results else None)
    verdict = failed.verdict if failed else (None if missing else Verdict.PASSED)
    return Summary(
        verdict=verdict,
        message=last.message if last else "",
        target_instructions=_instructions(by_stage),
        score=_score(by_stage) if verdict is Verdict.PASSED else None,
        not_reached=missing,
    )


def _instructions(by_stage: dict[Stage, AnyStageResult]) -> TargetInstructions | None:
    counters = by_stage.get(Stage.COUNTERS)
    if counters and isinstance(counters.evidence, CountersEvidence):
        seen = counters.evidence
        timing = by_stage.get(Stage.TIMING)
        if timing and isinstance(timing.evidence, TimingEvidence):
            difference = launch_difference(seen, timing.evidence)
            if difference:
                return TargetInstructions(
                    status=InstructionStatus.UNKNOWN,
                    reason=difference,
                    work_share_reason=difference,
                )
        return TargetInstructions(
            status=seen.status,
            reason=seen.reason,
            tier=seen.tier,
            work_share=seen.work_share,
            work_share_reason=seen.work_share_reason,
        )
    sass = by_stage.get(Stage.SASS)
    if sass and isinstance(sass.evidence, SassEvidence):
        if not sass.evidence.literal_match:
            return TargetInstructions(status=InstructionStatus.ABSENT, reason=sass.message)
        reason = "present in the binary; execution not measured yet"
        return TargetInstructions(
            status=InstructionStatus.UNKNOWN, reason=reason, tier=sass.evidence.tier
        )
    return None


def launch_difference(profile: CountersEvidence, timed: TimingEvidence) -> str:
    """'' if the profiled kernels are the timed ones: same names, grids, blocks and numbers.

    Copies and memsets do not count: the profiler does not list them.
    """
    if not profile.launches or not timed.launches:
        return ""
    profiled, measured = _kernels(profile.launches), _kernels(timed.launches)
    if profiled == measured:
        return ""
    return (
        f"profile differs from timed run: profiled {_listed(profiled)}, timed {_listed(measured)}"
    )


def _kernels(launches: Sequence[KernelLaunch]) -> list[tuple[str, str, str, int]]:
    return sorted(
        (launch.name, str(launch.grid), str(launch.block), launch.count)
        for launch in launches
        if launch.kind == "kernel"
    )


def _listed(kernels: list[tuple[str, str, str, int]]) -> str:
    shown = [f"{count} x {name[:80]} {grid}" for name, grid, _, count in kernels[:3]]
    more = f" and {len(kernels) - 3} more" if len(kernels) > 3 else ""
    return (", ".join(shown) or "no kernel") + more


def _score(by_stage: dict[Stage, AnyStageResult]) -> Score | None:
    timing = by_stage.get(Stage.TIMING)
    if timing is None or not isinstance(timing.evidence, TimingEvidence):
        return None
    seen = timing.evidence
    measured = (
        seen.latency_ns,
        seen.baseline_latency_ns,
        seen.speedup,
        seen.speedup_low,
        seen.speedup_high,
        seen.noise,
    )
    if None in measured:
        return None
    latency_ns, baseline_ns, speedup, low, high, noise = (float(value or 0) for value in measured)
    return Score(
        scoring_version=SCORING_VERSION,
        latency_ns=latency_ns,
        baseline_latency_ns=baseline_ns,
        speedup=speedup,
        speedup_low=low,
        speedup_high=high,
        noise=noise,
        sample_count=len(seen.samples),
    )
