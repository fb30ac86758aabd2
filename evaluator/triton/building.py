"""From a Triton source to what g++ links: traced in the sandbox, its record turned into C++."""

from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path

from pydantic import ValidationError

from evaluator.bench import Bench
from evaluator.build import COMPILE_SECONDS, OUT_FOLDER, BuildPlan, lay_out
from evaluator.inspection import TOOL_LIMITS, TOOL_SECONDS
from evaluator.problems.prototypes import parameters
from evaluator.records.base import InvalidJson, sha256_hex, strict_loads
from evaluator.records.evidence import Ending, KernelLaunch, KernelResources, ProcessReport
from evaluator.records.verdicts import EvaluatorFault
from evaluator.sandbox import OutputRefused, read_output
from evaluator.triton.confinement import run_tracer
from evaluator.triton.launcher import launcher
from evaluator.triton.recording import WARP, Recording
from evaluator.work import Work

RECORD = "out/trace.json"
RECORD_BYTES = 16 << 20
CUBIN_BYTES = 16 << 20
NO_SUCH_TOOL = (126, 127)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """What is left to compile; without a plan the report's detail or the output says why not.

    files   to be written below the workspace before the launcher is compiled
    """

    report: ProcessReport
    plan: BuildPlan | None = None
    files: dict[str, bytes] = field(default_factory=dict)
    launches: tuple[KernelLaunch, ...] = ()
    cubins: dict[str, str] = field(default_factory=dict)
    shared_bytes: dict[str, int] = field(default_factory=dict)

    def with_cubins(self, kernels: tuple[KernelResources, ...]) -> tuple[KernelResources, ...]:
        """Each kernel with its cubin's digest and its dynamic shared memory."""
        return tuple(
            kernel.model_copy(
                update={
                    "cubin_sha256": self.cubins.get(kernel.name),
                    "dynamic_shared_bytes": self.shared_bytes.get(kernel.name),
                }
            )
            for kernel in kernels
        )


def prepare(work: Work, build_plan: BuildPlan, bench: Bench) -> Prepared:
    """Trace the candidate, then plan the launcher. Raises EvaluatorFault without triton."""
    with bench.sandbox.scratch() as workspace:
        lay_out(work, build_plan, workspace)
        report = run_tracer(
            "trace", build_plan.entry_text, bench, workspace, timeout_seconds=COMPILE_SECONDS
        )
        if report.ending is not Ending.FINISHED or report.exit_code != 0:
            return Prepared(report=report)
        try:
            recording, cubins = _left(workspace)
        except _Unusable as error:
            return Prepared(report=report.model_copy(update={"detail": str(error)}))
    given = parameters(work.problem)
    tensors = sum(not one.is_scalar for one in given)
    if any(one.storage == "parameter" and one.number >= tensors for one in recording.places):
        detail = f"the record names a tensor beyond the {tensors} of the problem"
        return Prepared(report=report.model_copy(update={"detail": detail}))
    images = _images(cubins, work, bench)
    if isinstance(images, str):
        return Prepared(report=report.model_copy(update={"detail": images}))
    text = launcher(recording, given, work.candidate.entry_symbol)
    names = [kernel.name for kernel in recording.kernels]
    return Prepared(
        report=report,
        plan=replace(build_plan, entry_text=text),
        files={f"out/kernel_{number}.fatbin": image for number, image in enumerate(images)},
        launches=_launches(recording),
        cubins={name: sha256_hex(cubin) for name, cubin in zip(names, cubins, strict=True)},
        shared_bytes={kernel.name: kernel.shared_bytes for kernel in recording.kernels},
    )


class _Unusable(Exception):
    """The tracer's process ended well and left no usable record: only its author can do that."""


def _left(workspace: Path) -> tuple[Recording, list[bytes]]:
    try:
        data = read_output(workspace, RECORD, limit_bytes=RECORD_BYTES)
        if data is None:
            raise _Unusable("the traced run ended without its record: the source ended the process")
        recording = Recording.model_validate(strict_loads(data))
        cubins = [
            read_output(workspace, f"out/kernel_{number}.cubin", limit_bytes=CUBIN_BYTES)
            for number in range(len(recording.kernels))
        ]
    except (OutputRefused, InvalidJson, ValidationError) as error:
        raise _Unusable(f"the record of the traced run is not usable: {_said(error)}") from error
    present = [cubin for cubin in cubins if cubin and cubin[:4] == b"\x7fELF"]
    if len(present) != len(cubins):
        raise _Unusable("the record of the traced run is not usable: a kernel has no cubin")
    return recording, present


def _said(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"[:300]
    return str(error)[:300]


def _images(cubins: list[bytes], work: Work, bench: Bench) -> list[bytes] | str:
    """Each cubin in the container that the CUDA tools read; or why that cannot be."""
    nvcc = bench.toolchain.need("nvcc")
    assert work.target.gencode is not None
    architecture = work.target.gencode.split("code=")[-1].removeprefix("sm_")
    tool = str(nvcc.root / "bin" / "fatbinary")
    script = (
        'for number in $(seq 0 "$2"); do "$0" --64 --create="kernel_$number.fatbin" '
        '"--image3=kind=elf,sm=$1,file=kernel_$number.cubin" || exit; done'
    )
    with bench.sandbox.scratch() as workspace:
        (workspace / OUT_FOLDER).mkdir()
        for number, cubin in enumerate(cubins):
            (workspace / f"out/kernel_{number}.cubin").write_bytes(cubin)
        report = bench.sandbox.run(
            ["/bin/sh", "-c", script, tool, architecture, str(len(cubins) - 1)],
            workspace=workspace,
            cwd=OUT_FOLDER,
            read_only=(nvcc.root,),
            limits=TOOL_LIMITS,
            timeout_seconds=TOOL_SECONDS,
        )
        if report.exit_code in NO_SUCH_TOOL:
            raise EvaluatorFault(f"fatbinary was not found beside nvcc in {nvcc.root}/bin")
        names = [f"out/kernel_{number}.fatbin" for number in range(len(cubins))]
        images = [read_output(workspace, name, limit_bytes=2 * CUBIN_BYTES) for name in names]
    made = [image for image in images if image]
    if report.exit_code != 0 or len(made) != len(cubins):
        return f"fatbinary cannot read a cubin: {report.output_tail.strip()[-300:]}"
    return made


def _launches(recording: Recording) -> tuple[KernelLaunch, ...]:
    """Equal launches counted, in the order in which they first occur."""
    seen = Counter(
        (recording.kernels[one.kernel].name, one.blocks, (one.warps * WARP, 1, 1))
        for one in recording.launches
    )
    return tuple(
        KernelLaunch(kind="kernel", name=name, grid=grid, block=block, count=count)
        for (name, grid, block), count in seen.items()
    )
