"""Thirty evaluations in one judge, good and bad ones: nothing of them is left behind."""

import os
import tempfile
import threading
from pathlib import Path

import pytest

from evaluator.bench import Bench
from evaluator.judge.judge import Judge
from evaluator.judge.mappings import processes_of
from evaluator.judge.measuring import Plan
from evaluator.pipeline import run_lane
from evaluator.records.verdicts import Lane, Stage, Verdict
from evaluator.targets import find_target

pytestmark = pytest.mark.serial

PLAN = Plan(trials=1, warmup=1, calls=2, verified=1, bursts=1, singles=1, alone=2)
ROUNDS = 5
HEAD = """
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <sys/socket.h>
#include <unistd.h>
static float wide(uint16_t v) {
  uint32_t b = uint32_t(v) << 16; float f; memcpy(&f, &b, 4); return f;
}
static void multiply(const uint16_t* A, const uint16_t* B, uint16_t* C) {
  for (int i = 0; i < 65536; ++i) {
    float s = 0;
    for (int k = 0; k < 256; ++k) s += wide(A[i / 256 * 256 + k]) * wide(B[i % 256 * 256 + k]);
    uint32_t b; memcpy(&b, &s, 4);
    C[i] = uint16_t((b + 0x7fff + ((b >> 16) & 1)) >> 16);
  }
}
extern "C" void run(const uint16_t* A, const uint16_t* B, uint16_t* C) {
"""
CASES = {
    "multiply(A, B, C);": Verdict.PASSED,
    "memset(C, 0, 131072);": Verdict.INCORRECT_NUMERICAL,
    "abort();": Verdict.RUNTIME_ERROR,
    "_exit(0);": Verdict.RUNTIME_ERROR,
    "for (int fd = 3; fd < 64; ++fd) send(fd, C, 64, 0);": Verdict.RUNTIME_ERROR,
    "if (!fork()) { setsid(); if (!fork()) sleep(600); _exit(0); } sleep(600);": Verdict.TIMEOUT,
}


@pytest.fixture
def left(tmp_path, monkeypatch):
    """Descriptors, threads, new processes and temporary files of this process.

    A site that another test of the session started has processes of its own: they do not count.
    """
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    standing = processes_of(os.getpid())[1:]

    def new_processes() -> int:
        others = {below for process in standing for below in processes_of(process)}
        return len(set(processes_of(os.getpid())) - others)

    def count() -> tuple[int, int, int, list[str]]:
        return (
            len(os.listdir("/proc/self/fd")),
            threading.active_count(),
            new_processes(),
            sorted(path.name for path in tmp_path.glob("ptxboard-*")),
        )

    return count


def test_thirty_evaluations_leave_nothing_behind(bench: Bench, make_work, left):
    judge = Judge(find_target("host"), bench.sandbox, bench.toolchain, call_seconds=2, plan=PLAN)
    lent = Bench(sandbox=bench.sandbox, toolchain=bench.toolchain, cache=bench.cache, device=judge)
    after_a_round = []
    for _ in range(ROUNDS):
        for body, verdict in CASES.items():
            work = make_work(f"{HEAD}{body}}}\n", target="host")
            for lane in Lane:
                for result in run_lane(work, lent, lane):
                    work = work.with_result(result)
            seen = work.result(Stage.CORRECTNESS)
            assert seen is not None
            assert seen.verdict is verdict, (body, seen.message)
        after_a_round.append(left())
    assert after_a_round == [after_a_round[0]] * ROUNDS
    assert after_a_round[0][2:] == (1, [])


def test_a_judge_that_cannot_make_its_inputs_gives_the_memory_back(left, monkeypatch):
    from evaluator.judge import buffers
    from evaluator.problems import find_problem

    def fail(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(buffers, "make_inputs", fail)
    before = left()
    with pytest.raises(MemoryError):
        buffers.Buffers(find_problem("gemm_n256_k256"), None, 3)
    assert left() == before


def test_a_sandbox_that_cannot_start_keeps_no_descriptor(bench: Bench, left, tmp_path):
    from dataclasses import replace

    from evaluator.records.verdicts import EvaluatorFault

    broken = replace(bench.sandbox, bubblewrap=Path("/no/such/bwrap"), setpriv=None)
    (tmp_path / "work").mkdir()
    before = left()
    with pytest.raises(EvaluatorFault, match="could not be started"):
        broken.run(["/bin/true"], workspace=tmp_path / "work", timeout_seconds=5)
    assert left() == before
