"""Compile seconds of both bindings on this machine, interleaved, cache off.

python tests/bench/compile_seconds.py [repeats]
"""

import sys
import tempfile
from pathlib import Path
from statistics import median

from evaluator.pipeline import Bench, run_lane
from evaluator.problems import find_problem
from evaluator.records.candidate import Binding, Candidate, Language, Source
from evaluator.records.verdicts import Lane, Stage
from evaluator.targets import find_target
from evaluator.work import Work

KERNELS = Path("examples/kernels")
CASES = (
    ("gemm_plain.cu", Binding.C, "gemm_n7168_k5120"),
    ("gemm_wgmma_tma.cu", Binding.C, "gemm_n7168_k5120"),
    ("gemm_tvm_ffi.cu", Binding.TVM_FFI, "gemm_n256_k256"),
)


def once(file: str, binding: Binding, problem: str) -> float:
    """Seconds of the compilation stage of one kernel, from an empty cache."""
    source = Source(path=file, content=(KERNELS / file).read_text())
    candidate = Candidate(
        problem=problem,
        target="h200",
        language=Language.CUDA,
        binding=binding,
        sources=(source,),
        entry_file=file,
    )
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench.of_this_machine(cache=Path(folder) / "cache")
        work = Work(
            candidate=candidate,
            problem=find_problem(problem),
            target=find_target("h200"),
            folder=Path(folder),
        )
        for result in run_lane(work, bench, Lane.BUILD):
            if result.stage is Stage.COMPILATION:
                assert result.passed, result.message
                return (result.ended_at - result.started_at).total_seconds()
    raise AssertionError("the compilation stage was not reached")


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    seconds: dict[str, list[float]] = {case[0]: [] for case in CASES}
    for _ in range(repeats):
        for case in CASES:
            seconds[case[0]].append(once(*case))
    print("| kernel | binding | median s | min s | max s |\n| --- | --- | --- | --- | --- |")
    for file, binding, _ in CASES:
        values = seconds[file]
        print(
            f"| {file} | {binding} | {median(values):.2f} | {min(values):.2f} | {max(values):.2f} |"
        )


if __name__ == "__main__":
    main()
