"""Rows for tests and for looking at pages: plausible evidence that nobody measured.

Nothing here is shipped or loaded by the product; measured data comes from workers only.
"""

import math
import random
import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from django.contrib.auth.models import User

from evaluator.problems.catalogue import build_catalogue
from evaluator.records.base import canonical_json
from evaluator.records.candidate import Candidate, Source
from evaluator.records.evaluation import Environment, StageResult
from evaluator.records.evidence import (
    BatchBracket,
    CompilationEvidence,
    CorrectnessEvidence,
    CorrectnessTrial,
    CountersEvidence,
    DeviceReading,
    Ending,
    InstructionCount,
    KernelLaunch,
    KernelResources,
    OpcodeCount,
    OutputError,
    PolicyEvidence,
    ProcessReport,
    SanitizerEvidence,
    SassEvidence,
    SassMatch,
    TimingEvidence,
    TimingSample,
    VerifiedCall,
)
from evaluator.records.problem import Problem as ProblemRecord
from evaluator.records.summary import LANE_OF, planned_stages, summarise
from evaluator.records.verdicts import InstructionStatus, Lane, Stage, Tier, Verdict
from evaluator.targets import TARGETS
from leaderboard.models import (
    Attempt,
    Entrant,
    Job,
    Problem,
    StageRecord,
    Submission,
    Worker,
)
from leaderboard.models.stage_record import chained_digest
from leaderboard.services.catalogue import catalogue_sync
from leaderboard.services.evaluations import evaluation_record

NOW = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
SHA = "9f2c1d4be07a5a3386d1f0c2b79e4458aa01c6d3e8f7b25490de13a6c4f78b12"
KERNEL = """\
#include <cuda_bf16.h>
#include <cuda_runtime.h>

__global__ void gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c) {
    // One tile of C per block; see the wgmma version for the fast path.
    int row = blockIdx.y * 16 + threadIdx.y;
    float sum = 0.0f;
    for (int k = 0; k < 5120; ++k) {
        sum += __bfloat162float(a[row * 5120 + k]) * __bfloat162float(b[k]);
    }
    c[row] = __float2bfloat16(sum);
}

extern "C" void run(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c,
                    cudaStream_t stream) {
    gemm<<<dim3(448, 512), dim3(16, 16), 0, stream>>>(a, b, c);
}
"""


def problems() -> dict[str, Problem]:
    """The whole catalogue as rows, by name."""
    catalogue_sync(records=build_catalogue())
    return {row.name: row for row in Problem.objects.current()}


def user(name: str = "alice", **more: Any) -> User:
    return User.objects.create_user(name, password="correct horse battery", **more)


def entrant(name: str = "alice", **more: Any) -> Entrant:
    return Entrant.objects.create(
        slug=more.pop("slug", f"e{uuid.uuid4().hex[:10]}"), display_name=name, **more
    )


def submission(
    *,
    by: Entrant,
    problem: Problem,
    target: str = "h200",
    name: str = "wgmma, TMA multicast, 2 consumers",
    source: str = KERNEL,
    created_at: datetime = NOW,
    **more: Any,
) -> Submission:
    """A queued submission without a job."""
    place = TARGETS[target]
    path = "kernel.cpp" if place.languages == ("cpp",) else "kernel.cu"
    candidate = Candidate(
        problem=problem.name,
        target=target,
        language=place.languages[0],
        sources=(Source(path=path, content=f"// {uuid.uuid4()}\n{source}"),),
        entry_file=path,
    )
    return Submission.objects.create(
        entrant=by,
        problem=problem,
        target=target,
        language=candidate.language.value,
        binding=candidate.binding.value,
        name=name,
        candidate_json=canonical_json(candidate.model_dump(mode="json")),
        candidate_digest=candidate.digest,
        created_at=created_at,
        **more,
    )


def queued(one: Submission, *, lane: str = "build", state: str = "QUEUED", **more: Any) -> Attempt:
    """The submission's job with one attempt, queued unless told otherwise."""
    job, _ = Job.objects.get_or_create(
        submission=one,
        number=1,
        defaults={"created_at": one.created_at, "lane": lane, "state": "QUEUED"},
    )
    number = job.attempts.filter(lane=lane).count() + 1
    return Attempt.objects.create(
        job=job,
        lane=lane,
        target=one.target,
        number=number,
        state=state,
        created_at=one.created_at + timedelta(seconds=number + 30 * (lane == "gpu")),
        **more,
    )


def evaluated(
    one: Submission, results: list[StageResult[Any]], *, worker: str = "h200-a"
) -> Submission:
    """Stage records, attempts, evaluation and state, as if workers had reported `results`."""
    place = TARGETS[one.target]
    planned = planned_stages(is_gpu=place.is_gpu)
    previous, records, attempts = one.candidate_digest, [], {}
    for result in results:
        lane = LANE_OF[result.stage]
        if lane not in attempts:
            ran_on = worker if lane is Lane.GPU else "build-1"
            attempts[lane] = queued(
                one,
                lane=lane.value,
                state="FINISHED",
                worker=ran_on,
                claimed_at=one.created_at,
                ended_at=one.created_at + timedelta(minutes=1),
                environment=environment(one.target).model_dump(mode="json"),
            )
        value = result.model_dump(mode="json")
        digest = chained_digest(previous, value)
        records.append(
            StageRecord.objects.create(
                attempt=attempts[lane],
                stage=result.stage.value,
                verdict=result.verdict.value,
                message=result.message,
                result_json=canonical_json(value),
                previous_digest=previous,
                digest=digest,
                started_at=result.started_at,
                ended_at=result.ended_at,
                posted_at=result.ended_at or NOW,
            )
        )
        previous = digest
    summary = summarise(results, planned)
    if summary.verdict is None:
        return one
    last = records[-1].attempt
    evaluation_record(
        attempt=last,
        records=records,
        summary=summary,
        environment=environment(one.target),
        created_at=one.created_at + timedelta(minutes=1),
    )
    Job.objects.filter(submission=one).update(state="DONE", ended_at=NOW)
    Submission.objects.filter(pk=one.pk).update(
        state="DONE", verdict=summary.verdict.value, message=summary.message, ended_at=NOW
    )
    one.refresh_from_db()
    return one


def stages(
    problem: ProblemRecord,
    target: str = "h200",
    *,
    speedup: float = 0.94,
    work_share: float | None = 1.0,
    baseline_ns: int = 812_000,
    seed: int = 1,
) -> list[StageResult[Any]]:
    """All planned stages, each passed."""
    place, dice = TARGETS[target], random.Random(seed)
    made = {
        Stage.POLICY: policy(),
        Stage.COMPILATION: compilation(target),
        Stage.CORRECTNESS: correctness(problem),
        Stage.TIMING: timing(problem, target, speedup=speedup, baseline_ns=baseline_ns, dice=dice),
    }
    if place.is_gpu:
        made[Stage.SASS] = sass(matched=work_share is not None)
        made[Stage.SANITIZER] = sanitizer()
        made[Stage.COUNTERS] = counters(problem, work_share)
    moment, found = NOW, []
    took = {Stage.COMPILATION: 4.1, Stage.TIMING: 14.8, Stage.COUNTERS: 9.2, Stage.SANITIZER: 3.3}
    for stage in planned_stages(is_gpu=place.is_gpu):
        ended = moment + timedelta(seconds=took.get(stage, 0.7))
        verdict, message, evidence = made[stage]
        found.append(
            StageResult(
                stage=stage,
                verdict=verdict,
                message=message,
                evidence=evidence,
                started_at=moment,
                ended_at=ended,
            )
        )
        moment = ended
    return found


def failing(
    results: list[StageResult[Any]],
    stage: Stage,
    verdict: Verdict,
    message: str,
    **evidence: Any,
) -> list[StageResult[Any]]:
    """The results up to `stage`, which fails with this message and changed evidence."""
    kept = results[: [result.stage for result in results].index(stage) + 1]
    last = kept[-1]
    changed = last.evidence.model_copy(update=evidence)
    kept[-1] = last.model_copy(update={"verdict": verdict, "message": message, "evidence": changed})
    return kept


def process(ending: Ending = Ending.FINISHED, **more: Any) -> ProcessReport:
    value = {"command": ("host", "--fd", "7"), "duration_ns": 1_840_000_000, "exit_code": 0}
    return ProcessReport(ending=ending, **{**value, **more})


def policy() -> tuple[Verdict, str, PolicyEvidence]:
    evidence = PolicyEvidence(
        command=("nvcc", "-M", "-std=c++17", "-gencode=arch=compute_90a,code=sm_90a", "kernel.cu"),
        header_count=214,
        author_headers=(),
    )
    return Verdict.PASSED, "214 headers opened, none banned", evidence


def compilation(target: str) -> tuple[Verdict, str, CompilationEvidence]:
    kernels = (
        KernelResources(name="gemm_wgmma<128, 256, 64>", registers=168, static_shared_bytes=1024),
        KernelResources(name="convert_epilogue", registers=40, spill_store_bytes=16, stack_bytes=8),
    )
    evidence = CompilationEvidence(
        process=process(command=("nvcc", "-O3", "-std=c++17", "-lineinfo", "kernel.cu")),
        compiler_version="nvcc 13.0.88" if target != "host" else "g++ 12.2.0",
        log="ptxas info    : Compiling entry function '\x1b[1mgemm_wgmma\x1b[0m' for 'sm_90a'\n"
        "ptxas info    : Used 168 registers, used 1 barriers, 1024 bytes smem\n",
        log_truncated=False,
        log_byte_count=147,
        cache_key=SHA,
        cache_hit=False,
        kernels=kernels if target != "host" else (),
        entry_symbol="run",
        exported_symbols=("run",),
        needed_libraries=("libc.so.6", "libcudart.so.13"),
    )
    return Verdict.PASSED, "built in 4.1 s, 2 kernels, at most 168 registers", evidence


def sass(*, matched: bool) -> tuple[Verdict, str, SassEvidence]:
    matches = tuple(
        SassMatch(
            function="gemm_wgmma",
            address=0x0A40 + 0x20 * number,
            opcode=opcode,
            text=text,
            family=family,
            tier=tier,
        )
        for number, (opcode, text, family, tier) in enumerate(
            [
                ("UTMALDG", "UTMALDG.2D.MULTICAST [UR8], [UR4], UR12", "UTMALDG", Tier.PAYLOAD),
                ("UTMALDG", "UTMALDG.2D.MULTICAST [UR16], [UR6], UR12", "UTMALDG", Tier.PAYLOAD),
                ("HGMMA", "HGMMA.64x256x16.F32.BF16 R24, gdesc[UR8], R24", "GMMA", Tier.MMA),
                ("HGMMA", "HGMMA.64x256x16.F32.BF16 R24, gdesc[UR10], R24", "GMMA", Tier.MMA),
                ("UTMASTG", "UTMASTG.2D [UR4], [UR20]", "UTMASTG", Tier.PAYLOAD),
            ]
        )
    )
    opcodes = {"MOV": 212, "IMAD": 164, "HGMMA": 16, "SYNCS": 44, "UTMALDG": 4, "BRA": 31}
    evidence = SassEvidence(
        cubin_sha256=SHA,
        tool_version="cuobjdump 13.2.51",
        families=TARGETS["h200"].families,
        functions=("gemm_wgmma", "convert_epilogue"),
        opcode_counts=tuple(OpcodeCount(opcode=key, count=n) for key, n in opcodes.items()),
        matches=matches if matched else (),
        match_count=len(matches) if matched else 0,
        literal_match=matched,
        tier=Tier.MMA if matched else None,
    )
    message = "5 target instructions, tier mma" if matched else "no target instruction"
    return Verdict.PASSED, message, evidence


def sanitizer() -> tuple[Verdict, str, SanitizerEvidence]:
    evidence = SanitizerEvidence(
        tool="memcheck",
        tool_version="compute-sanitizer 2025.3",
        process=process(),
        completed=True,
        error_count=0,
        first_fault=None,
        report="========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n",
        report_truncated=False,
    )
    return Verdict.PASSED, "memcheck found no error", evidence


def correctness(problem: ProblemRecord) -> tuple[Verdict, str, CorrectnessEvidence]:
    sizes = dict(problem.workload.axes)
    for name, axis in problem.definition.axes.items():
        if axis.type == "const":
            sizes[name] = axis.value
    trials = tuple(
        CorrectnessTrial(
            trial=trial,
            outputs=tuple(
                output_error(
                    name,
                    spec.dtype.value,
                    tuple(sizes[axis] for axis in spec.shape or ()),
                    trial,
                )
                for name, spec in problem.definition.outputs.items()
            ),
        )
        for trial in range(3)
    )
    evidence = CorrectnessEvidence(
        process=process(),
        tolerance=problem.tolerance,
        planned_trials=3,
        trials=trials,
        library_sha256=SHA,
        repeat_differs=False,
    )
    return Verdict.PASSED, "3 trials, every element inside the tolerance", evidence


def output_error(name: str, dtype: str, shape: tuple[int, ...], trial: int) -> OutputError:
    return OutputError(
        name=name,
        shape=shape,
        dtype=dtype,
        element_count=math.prod(shape),
        unwritten_count=0,
        nonfinite_count=0,
        bad_count=0,
        max_abs_error=0.0039 + trial * 1e-4,
        max_rel_error=0.0077,
        smallest_passing_atol=0.0,
        rms_error_to_fp32=0.00117,
        constant_ratio=0.12,
    )


def counters(
    problem: ProblemRecord, work_share: float | None
) -> tuple[Verdict, str, CountersEvidence]:
    if work_share is None:
        evidence = CountersEvidence(
            status=InstructionStatus.ABSENT,
            reason="the binary holds no target instruction, so nothing was profiled",
            work_share_reason="no target instruction in the binary",
        )
        return Verdict.PASSED, evidence.reason, evidence
    warps = problem.flop_count // (2 * 64 * 256 * 16) * 4
    evidence = CountersEvidence(
        status=InstructionStatus.EXECUTED,
        reason="5 of 5 matched instructions ran",
        tool_version="Nsight Compute 2025.3.1",
        process=process(),
        launches=launches(),
        instructions=tuple(
            InstructionCount(
                function="gemm_wgmma",
                address=0x0A80 + 0x20 * number,
                opcode="HGMMA",
                text="HGMMA.64x256x16.F32.BF16 R24, gdesc[UR8], R24",
                family="GMMA",
                tier=Tier.MMA,
                warp_executions=warps // 2,
                thread_executions=warps * 16,
            )
            for number in range(2)
        ),
        tier=Tier.MMA,
        target_flop_count=int(problem.flop_count * work_share),
        problem_flop_count=problem.flop_count,
        work_share=work_share,
        library_sha256=SHA,
    )
    return Verdict.PASSED, f"executed, tier mma, work share {work_share:.3f}", evidence


def launches() -> tuple[KernelLaunch, ...]:
    return (KernelLaunch(kind="kernel", name="gemm_wgmma", grid=(132, 1, 1), block=(384, 1, 1)),)


def timing(
    problem: ProblemRecord, target: str, *, speedup: float, baseline_ns: int, dice: random.Random
) -> tuple[Verdict, str, TimingEvidence]:
    latency_ns = baseline_ns / speedup
    samples = sampled(latency_ns, dice, with_reading=target != "host")
    baseline = sampled(baseline_ns, dice, with_reading=False)
    noise = 0.004 + 0.004 * dice.random()
    width = noise * 0.6
    evidence = TimingEvidence(
        timer="CUPTI activity, concurrent kernels" if target != "host" else "perf_counter_ns",
        process=process(),
        planned_trials=3,
        planned_calls=50,
        warmup_calls=10,
        samples=samples,
        baseline=problem.baseline,
        baseline_version="cuBLAS 13.0.2.14" if target != "host" else "torch 2.9.0, 2 threads",
        baseline_samples=baseline,
        batches=tuple(
            BatchBracket(
                trial=trial,
                call_count=20,
                wall_ns=int(latency_ns * 20 * (1.006 + 0.002 * trial)),
                warm_span_ns=int(latency_ns * 20),
            )
            for trial in range(3)
        ),
        verified=tuple(VerifiedCall(trial=n, call=7 * n + 3, bad_count=0) for n in range(3)),
        launches=launches() if target != "host" else (),
        launch_sets=1,
        flush_bytes=100 << 20,
        library_sha256=SHA,
        noise_limit=TARGETS[target].noise_limit,
        speed_of_light_ns=problem.flop_count / 989e12 * 1e9 if target != "host" else None,
        tolerated_batch_excess=0.05,
        tolerated_batch_excess_ns=5_000.0,
        latency_ns=latency_ns,
        baseline_latency_ns=float(baseline_ns),
        speedup=speedup,
        speedup_low=speedup * (1 - width),
        speedup_high=speedup * (1 + width),
        noise=noise,
        spread=0.009,
        baseline_spread=0.006,
    )
    return Verdict.PASSED, f"noise {noise:.1%}, limit 2.0%", evidence


def sampled(
    latency_ns: float, dice: random.Random, *, with_reading: bool
) -> tuple[TimingSample, ...]:
    made = []
    for trial in range(3):
        for call in range(50):
            spike = 0.03 * dice.random() if dice.random() < 0.05 else 0.0
            span = int(latency_ns * (1 + dice.gauss(0, 0.003) + spike + 0.002 * trial))
            reading = DeviceReading(
                sm_clock_hz=1_980_000_000 - 15_000_000 * dice.randrange(3),
                temperature_celsius=52.0 + trial,
                power_watts=610.0 + dice.randrange(40),
            )
            made.append(
                TimingSample(
                    trial=trial,
                    call=call,
                    span_ns=span,
                    busy_ns=span - 900,
                    wall_ns=span + 41_000,
                    launch_count=1,
                    reading=reading if with_reading else None,
                )
            )
    return tuple(made)


def environment(target: str = "h200") -> Environment:
    gpu = {
        "device_name": "NVIDIA H200",
        "device_uuid": "GPU-1f0e2c3d-0000-4000-8000-6b7a8c9d0e1f",
        "driver": "580.95.05",
        "cuda_runtime": "13.0",
        "cupti": "13.0.85",
        "nsight_compute": "2025.3.1",
        "compute_sanitizer": "2025.3",
        "cuobjdump": "13.2.51",
        "cudnn": "9.13.0",
        "cublas": "13.0.2.14",
    }
    return Environment(
        harness_version="1",
        hostname_digest=SHA[:16],
        operating_system="Linux 6.18",
        python="3.11.9",
        compiler="nvcc 13.0.88" if target != "host" else "g++ 12.2.0",
        torch="2.9.0",
        sandbox="bubblewrap 0.11.0",
        **(gpu if target != "host" else {}),
    )


def worker(name: str, lanes: list[str], targets: list[str], **more: Any) -> Worker:
    seen = more.pop("last_seen", NOW)
    return Worker.objects.create(
        name=name,
        token_name=name,
        lanes=lanes,
        targets=targets,
        first_seen=seen - timedelta(days=3),
        last_seen=seen,
        **more,
    )
