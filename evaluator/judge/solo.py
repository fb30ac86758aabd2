"""A candidate alone under a tool that watches it: one call on buffers of its own."""

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from evaluator.host.protocol import Message
from evaluator.judge.confinement import LIBRARY_NAME, ffi_library, interpreter, surroundings
from evaluator.judge.host_process import parameter_table, put_library
from evaluator.problems.tensors import index_contents
from evaluator.process import Limits
from evaluator.records.candidate import Binding
from evaluator.records.evidence import ProcessReport
from evaluator.records.flashinfer import ScalarInput
from evaluator.records.problem import Problem
from evaluator.records.verdicts import EvaluatorFault
from evaluator.sandbox import OutputRefused, Sandbox, read_output
from evaluator.toolchain import Tool
from evaluator.work import Work

MAX_REPORT_BYTES = 256 << 20
TOOL_LIMITS = Limits(processes=2048, open_files=4096)


@dataclass(frozen=True, slots=True, kw_only=True)
class Watched:
    """How the run went, and the file that the tool wrote.

    `report` is None where there is none. `refusal` tells of something else in its place, which
    only the candidate can have put there: it runs beside the tool as the same user.
    """

    process: ProcessReport
    report: bytes | None
    refusal: str = ""


def run_watched(
    work: Work,
    sandbox: Sandbox,
    tool: Tool,
    options: Sequence[str],
    *,
    report_name: str,
    timeout_seconds: float,
) -> Watched:
    """`tool options... python solo`, the tool inside the sandbox too. Raises EvaluatorFault."""
    with sandbox.scratch() as workspace:
        put_library(work, workspace)
        around = surroundings(work)
        specification = _specification(work, sandbox.inside(workspace), workspace)
        process = sandbox.run(
            [str(tool.path), *options, *interpreter(), "solo", json.dumps(specification)],
            workspace=workspace,
            read_only=(*around.mounts, tool.root, *tool.path.resolve().parents[:1]),
            hidden=[path for path in around.hidden if not path.is_relative_to(tool.root)],
            env=around.environment,
            timeout_seconds=timeout_seconds,
            limits=TOOL_LIMITS,
            gpu=True,
        )
        report, refusal = _report(workspace, report_name)
    shown = (tool.path.name, *options, "python", "solo")
    process = process.model_copy(update={"command": shown})
    return Watched(process=process, report=report, refusal=refusal)


def _report(workspace: Path, name: str) -> tuple[bytes | None, str]:
    try:
        return read_output(workspace, name, limit_bytes=MAX_REPORT_BYTES), ""
    except OutputRefused as refusal:
        return None, str(refusal)


def _specification(work: Work, inside: Path, workspace: Path) -> Message:
    candidate, seed = work.candidate, secrets.randbits(32)
    uses_ffi = candidate.binding is Binding.TVM_FFI
    return {
        "library": str(inside / LIBRARY_NAME),
        "symbol": candidate.entry_symbol,
        "binding": candidate.binding.value,
        "parameters": parameter_table(work.problem),
        "scalars": _scalars(work.problem),
        "contents": _put_contents(work.problem, seed, inside, workspace),
        "seed": seed,
        "ffi_library": str(ffi_library()) if uses_ffi else None,
    }


def _scalars(problem: Problem) -> dict[str, int | float | bool]:
    inputs = problem.workload.inputs.items()
    return {name: given.value for name, given in inputs if isinstance(given, ScalarInput)}


def _put_contents(problem: Problem, seed: int, inside: Path, workspace: Path) -> dict[str, str]:
    """Files with the inputs that must be valid (offsets, page numbers), by input name."""
    found = {}
    for number, (name, content) in enumerate(index_contents(problem, seed).items()):
        file = f"contents_{number}.bin"
        (workspace / file).write_bytes(content)
        (workspace / file).chmod(0o644)
        found[name] = str(inside / file)
    return found


def library_digest(work: Work) -> str:
    artifact = work.artifact("library")
    if artifact is None:
        raise EvaluatorFault("no compiled library among the results: run the build lane first")
    return artifact.sha256
