"""Latency of a Triton kernel for several settings of its constants; needs a GPU of the target.

    python tests/bench/triton_variants.py examples/kernels/gemm_triton.py gemm_n7168_k5120 h200 \\
        "TILE_M, TILE_N, TILE_K = 128, 128, 64" "WARPS, STAGES = 8, 3; GROUP = 4"

Each argument is one variant: assignments that replace the lines with the same left side. The file
as it stands is measured first. Whole pipeline, so a wrong variant shows its verdict, not a time.
"""

import re
import sys
import tempfile
from pathlib import Path

from evaluator.bench import Bench
from evaluator.judge.judge import Judge
from evaluator.pipeline import run_lane
from evaluator.problems import find_problem
from evaluator.records.candidate import Candidate, Source
from evaluator.records.evidence import TimingEvidence
from evaluator.records.verdicts import Lane, Stage
from evaluator.sandbox import Sandbox
from evaluator.targets import find_target
from evaluator.toolchain import Toolchain
from evaluator.work import Work


def with_settings(text: str, settings: str) -> str:
    """Raises ValueError for a left side that stands at the start of no line."""
    for setting in filter(None, (part.strip() for part in settings.split(";"))):
        left = setting.partition("=")[0].strip()
        text, count = re.subn(rf"^{re.escape(left)} = .*$", setting, text, flags=re.MULTILINE)
        if count != 1:
            raise ValueError(f"{left!r} begins {count} lines, expected one")
    return text


def measured(text: str, problem: str, target: str, bench: Bench) -> str:
    candidate = Candidate(
        problem=problem,
        target=target,
        language="triton",
        sources=(Source(path="kernel.py", content=text),),
        entry_file="kernel.py",
    )
    with tempfile.TemporaryDirectory() as folder:
        work = Work(
            candidate=candidate,
            problem=find_problem(problem),
            target=find_target(target),
            folder=Path(folder),
        )
        for lane in Lane:
            for result in run_lane(work, bench, lane):
                work = work.with_result(result)
    last, built = work.results[-1], work.result(Stage.COMPILATION)
    timing = last.evidence
    if not isinstance(timing, TimingEvidence) or timing.latency_ns is None:
        return f"{last.stage}: {last.verdict}: {last.message[:150]}"
    speed = f"{timing.latency_ns / 1e3:.1f} us, speedup {timing.speedup:.3f}, {last.verdict}"
    return f"{speed}; {built.message[:80] if built else ''}"


def main() -> None:
    path, problem, target, *variants = sys.argv[1:]
    sandbox, toolchain = Sandbox.find(), Toolchain.find()
    judge = Judge(find_target(target), sandbox, toolchain)
    bench = Bench(sandbox=sandbox, toolchain=toolchain, device=judge)
    for settings in ("", *variants):
        text = with_settings(Path(path).read_text(), settings)
        print(f"{settings or 'as it stands'}: {measured(text, problem, target, bench)}", flush=True)


if __name__ == "__main__":
    main()
