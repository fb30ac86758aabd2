"""How the tracer is started: the base Python, triton's folder, and nothing else of ours inside.

What gets past it: a candidate shares the tracer's process and may write any record or cubin; so
the record is checked like any input, and a cubin has no more power than compiled CUDA has.
"""

import os
import sys
from pathlib import Path

from evaluator.bench import Bench
from evaluator.build import COMPILER_LIMITS, OUT_FOLDER, SOURCE_FOLDER
from evaluator.records.evidence import ProcessReport
from evaluator.triton.specification import TRACER_FOLDER

ROOT = TRACER_FOLDER.parents[2]
START = (
    "import sys; sys.path[:0] = [{root!r}]; sys.path.append({site!r}); "
    "from evaluator.triton.tracer.main import run; run(sys.argv[1:])"
)
SHOWN = ("python", "-m", "evaluator.triton.tracer")


def run_tracer(
    verb: str, told: str, bench: Bench, workspace: Path, *, timeout_seconds: float
) -> ProcessReport:
    """`check` or `trace`, started in `src/` of a laid-out workspace; files appear in `out/`."""
    package = bench.toolchain.need_triton().package
    folder = bench.sandbox.inside(workspace) / OUT_FOLDER
    report = bench.sandbox.run(
        [*_interpreter(package.parent), verb, told, str(folder)],
        workspace=workspace,
        cwd=SOURCE_FOLDER,
        read_only=(TRACER_FOLDER, package, *_interpreter_mounts()),
        env={
            "PYTHONHASHSEED": "0",
            "TRITON_BACKENDS_IN_TREE": "1",
            "TRITON_CACHE_DIR": str(folder / "cache"),
            "TRITON_DUMP_PTXAS_LOG": "1",
        },
        limits=COMPILER_LIMITS,
        timeout_seconds=timeout_seconds,
    )
    return report.model_copy(update={"command": (*SHOWN, verb, told)})


def _interpreter(site: Path) -> tuple[str, ...]:
    executable = os.path.realpath(str(getattr(sys, "_base_executable", sys.executable)))
    start = START.format(root=str(ROOT), site=str(site))
    return (executable, "-s", "-S", "-P", "-B", "-c", start)


def _interpreter_mounts() -> list[Path]:
    prefix = Path(os.path.realpath(sys.base_prefix))
    return [] if prefix.is_relative_to("/usr") else [prefix]
