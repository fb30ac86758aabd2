"""The judge as a process of its own: stages stream, hanging up cancels, a dead judge comes back."""

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path

import pytest

from evaluator.judge.client import JudgeClient, describe
from evaluator.judge.mappings import processes_of
from evaluator.pipeline import run_lane
from evaluator.records.verdicts import EvaluatorFault, Lane, Stage, Verdict

NAIVE = """
#include <cstdint>
#include <cstring>
#include <unistd.h>
static float wide(uint16_t v) {
  uint32_t b = uint32_t(v) << 16; float f; memcpy(&f, &b, 4); return f;
}
extern "C" void run(const uint16_t* A, const uint16_t* B, uint16_t* C) {
  SLEEP
  for (int i = 0; i < 65536; ++i) {
    float s = 0;
    for (int k = 0; k < 256; ++k) s += wide(A[i / 256 * 256 + k]) * wide(B[i % 256 * 256 + k]);
    uint32_t b; memcpy(&b, &s, 4);
    C[i] = uint16_t((b + 0x7fff + ((b >> 16) & 1)) >> 16);
  }
}
"""


@pytest.fixture
def client(tmp_path):
    made = JudgeClient(folder=tmp_path / "judge")
    yield made
    made.close()


@pytest.fixture
def built(bench, make_work):
    def build(sleep: str = ""):
        work = make_work(NAIVE.replace("SLEEP", sleep), target="host")
        for result in run_lane(work, bench, Lane.BUILD):
            work = work.with_result(result)
        return work

    return build


def test_stages_come_from_the_other_process_and_the_next_work_finds_it_warm(client, built):
    work = built()
    results = list(client.evaluate(work))
    assert [result.stage for result in results] == [Stage.CORRECTNESS, Stage.TIMING]
    assert results[0].verdict is Verdict.PASSED
    first = client.pid
    assert first is not None
    assert next(iter(client.evaluate(work))).verdict is Verdict.PASSED
    assert client.pid == first


def test_cancelled_work_ends_soon_and_the_judge_stays(client, built):
    start = time.monotonic()
    work = built("sleep(25);")
    limited = replace(work, cancelled=lambda: time.monotonic() - start > 3)
    assert list(client.evaluate(limited)) == []
    assert time.monotonic() - start < 20
    assert next(iter(client.evaluate(built()))).verdict is Verdict.PASSED


def test_a_judge_that_dies_costs_this_attempt_and_is_started_anew(client, built):
    work = built("sleep(25);")
    list(client.evaluate(replace(work, cancelled=lambda: True)))
    victim = client.pid
    assert victim is not None
    threading.Timer(1.5, os.kill, (victim, signal.SIGKILL)).start()
    with pytest.raises(EvaluatorFault, match="the judge process died during the evaluation"):
        list(client.evaluate(work))
    assert next(iter(client.evaluate(built()))).verdict is Verdict.PASSED
    assert client.pid != victim


def test_the_judge_ends_with_its_worker(tmp_path):
    text = (
        "import sys; from pathlib import Path; from evaluator.judge.client import JudgeClient; "
        "c = JudgeClient(folder=Path(sys.argv[1])); c._start(); print(c.pid, flush=True); "
        "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run(
        [sys.executable, "-c", text, str(tmp_path)], capture_output=True, text=True, check=False
    )
    judge = int(done.stdout)
    deadline = time.monotonic() + 10
    while _state(judge) not in ("gone", "Z") and time.monotonic() < deadline:
        time.sleep(0.1)
    assert _state(judge) in ("gone", "Z")


def test_nothing_is_left_of_a_worker_that_is_killed_in_the_middle(built, tmp_path):
    """Worker, judge and confined host: each ends with the one above it."""
    work = built("sleep(600);")
    (tmp_path / "work.json").write_text(json.dumps(describe(work)))
    text = (
        "import sys; from pathlib import Path; from evaluator.judge.client import JudgeClient; "
        "from evaluator.judge.server import read_work; folder = Path(sys.argv[1]); "
        "work = read_work((folder / 'work.json').read_bytes(), lambda: False); "
        "list(JudgeClient(folder=folder).evaluate(work))"
    )
    worker = subprocess.Popen([sys.executable, "-c", text, str(tmp_path)])
    deadline = time.monotonic() + 60
    while len(processes_of(worker.pid)) < 5 and time.monotonic() < deadline:
        time.sleep(0.2)
    family = processes_of(worker.pid)
    assert len(family) >= 5  # worker, judge, bwrap outside and inside, python
    worker.kill()
    worker.wait()
    deadline = time.monotonic() + 10
    while {_state(one) for one in family} - {"gone", "Z"} and time.monotonic() < deadline:
        time.sleep(0.1)
    assert {_state(one) for one in family} <= {"gone", "Z"}


def test_a_socket_that_was_cleaned_away_costs_nothing(client, built):
    work = built()
    list(client.evaluate(replace(work, cancelled=lambda: True)))
    first = client.pid
    shutil.rmtree(client._socket_folder)
    assert next(iter(client.evaluate(work))).verdict is Verdict.PASSED
    assert client.pid != first


def test_two_evaluations_at_once_take_turns(client, built):
    work = built()
    verdicts: list[Verdict] = []

    def evaluate() -> None:
        verdicts.append(next(iter(client.evaluate(work))).verdict)

    threads = [threading.Thread(target=evaluate) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert verdicts == [Verdict.PASSED, Verdict.PASSED]


def test_a_folder_that_disappears_is_our_fault_and_the_judge_stays(client, built):
    work = built()
    lost = replace(work, folder=work.folder / "no such folder")
    with pytest.raises(EvaluatorFault, match=r"library: expected SHA-256 .*, found no file"):
        list(client.evaluate(lost))
    first = client.pid
    assert next(iter(client.evaluate(work))).verdict is Verdict.PASSED
    assert client.pid == first


def _state(process: int) -> str:
    try:
        return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return "gone"


def test_the_client_needs_no_torch():
    text = "import evaluator.judge.client, sys; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", text], check=False).returncode == 0
