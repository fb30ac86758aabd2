"""Candidates on the `host` target, end to end: real g++, sandbox and protocol."""

from collections.abc import Callable
from pathlib import Path

import pytest

from evaluator.bench import Bench
from evaluator.judge.buffers import Buffers
from evaluator.judge.host_process import HostProcess
from evaluator.judge.judge import Judge
from evaluator.judge.mappings import processes_of
from evaluator.judge.measuring import Plan
from evaluator.pipeline import run_lane
from evaluator.records.evidence import CorrectnessEvidence, Ending, TimingEvidence
from evaluator.records.verdicts import Lane, Stage, Verdict
from evaluator.stages import correctness, timing
from evaluator.targets import find_target
from evaluator.work import Work

pytestmark = pytest.mark.serial

EXAMPLES = Path(__file__).parents[2] / "examples" / "kernels"
MHA = "mha_with_lse_d64_small"
SHORT_SECONDS = 2.0
PLAN = Plan(trials=3, warmup=1, calls=6, verified=2, bursts=1, singles=1)

HEAD = """
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <unistd.h>
static float wide(uint16_t v) {
  uint32_t b = uint32_t(v) << 16; float f; memcpy(&f, &b, 4); return f;
}
static uint16_t narrow(float f) {
  uint32_t b; memcpy(&b, &f, 4); return uint16_t((b + 0x7fff + ((b >> 16) & 1)) >> 16);
}
static void multiply(const uint16_t* A, const uint16_t* B, uint16_t* C) {
  for (int i = 0; i < 256; ++i)
    for (int j = 0; j < 256; ++j) {
      float s = 0;
      for (int k = 0; k < 256; ++k) s += wide(A[i * 256 + k]) * wide(B[j * 256 + k]);
      C[i * 256 + j] = narrow(s);
    }
}
"""
RUN = 'extern "C" void run(const uint16_t* A, const uint16_t* B, uint16_t* C) {'


def source(body: str, *, before: str = "") -> str:
    return f"{HEAD}{before}{RUN}{body}}}\n"


@pytest.fixture(scope="module")
def judge(bench: Bench) -> Judge:
    return Judge(
        find_target("host"), bench.sandbox, bench.toolchain, call_seconds=SHORT_SECONDS, plan=PLAN
    )


@pytest.fixture
def built(bench: Bench, make_work) -> Callable[..., Work]:
    def build(text: str, problem: str = "gemm_n256_k256") -> Work:
        work: Work = make_work(text, target="host", problem=problem)
        for result in run_lane(work, bench, Lane.BUILD):
            assert result.passed, result.message
            work = work.with_result(result)
        return work

    return build


@pytest.fixture
def checked(bench: Bench, built, judge: Judge):
    lent = Bench(sandbox=bench.sandbox, toolchain=bench.toolchain, device=judge)
    return lambda text, **more: correctness.run(built(text, **more), lent)


@pytest.fixture
def timed(bench: Bench, built, judge: Judge):
    lent = Bench(sandbox=bench.sandbox, toolchain=bench.toolchain, device=judge)
    return lambda text: timing.run(built(text), lent)


def test_it_passes_a_correct_candidate_and_keeps_what_was_seen(checked):
    result = checked(source("multiply(A, B, C);"))
    assert result.verdict is Verdict.PASSED
    seen = result.evidence
    assert isinstance(seen, CorrectnessEvidence)
    assert [trial.trial for trial in seen.trials] == [0, 1, 2]
    assert all(output.bad_count == 0 for trial in seen.trials for output in trial.outputs)
    assert seen.repeat_differs is False
    assert seen.process.sandboxed
    assert any(path.endswith("candidate.so") for path in seen.process.mapped_libraries)


def test_it_names_output_count_place_and_limit_of_a_wrong_answer(checked):
    result = checked(source("multiply(A, B, C); C[768] = narrow(wide(C[768]) + 100);"))
    assert result.verdict is Verdict.INCORRECT_NUMERICAL
    assert result.message.startswith("output C: 1 of 65536 elements wrong, first at (3, 0), ")
    assert result.message.endswith("; limit |out-ref| <= 0.01 + 0.01*|ref|")


def test_it_tells_elements_that_were_never_written(checked):
    body = "uint16_t last = C[65535]; multiply(A, B, C); C[65535] = last;"
    result = checked(source(body))
    assert result.verdict is Verdict.INCORRECT_NUMERICAL
    assert result.message == "output C: 1 of 65536 elements never written, first at (255, 255)"


@pytest.mark.parametrize("place", ["C[65536]", "C[-1]"])
def test_it_sees_one_element_behind_or_before_the_output(checked, place):
    result = checked(source(f"multiply(A, B, C); {place} ^= 1;"))
    assert result.verdict is Verdict.OUT_OF_BOUNDS_WRITE
    assert result.message.startswith("wrote outside of C in trial 0")


def test_it_sees_a_changed_input(checked):
    result = checked(source("multiply(A, B, C); const_cast<uint16_t*>(B)[5] ^= 1;"))
    assert result.verdict is Verdict.INPUT_MUTATED
    assert result.message == "input B changed during the call; inputs are const"


def test_an_empty_body_leaves_every_element_unwritten(checked):
    result = checked(source(""))
    assert result.verdict is Verdict.INCORRECT_NUMERICAL
    assert result.message.startswith("output C: 65536 of 65536 elements never written; ")


def test_wiping_inputs_and_outputs_alike_is_no_agreement(checked):
    """The reference was computed before, from inputs that the candidate cannot reach."""
    wipe = "memset(const_cast<uint16_t*>(A), 0, 131072); memset(C, 0, 131072);"
    result = checked(source(wipe))
    assert result.verdict is Verdict.INPUT_MUTATED
    assert result.message == "input A changed during the call; inputs are const"
    (output,) = result.evidence.trials[0].outputs
    assert output.bad_count > 60_000


def test_bits_that_differ_from_call_to_call_are_no_failure_within_the_tolerance(checked):
    body = "static int n; multiply(A, B, C); C[7] ^= n++ & 1;"
    result = checked(source(body))
    assert result.verdict is Verdict.PASSED
    assert result.evidence.repeat_differs is False


def test_a_log_sum_exp_in_base_2_is_wrong_beside_an_output_that_is_fine(checked):
    text = (EXAMPLES / "mha_forward_host.cpp").read_text()
    natural = "row.top + std::log(row.sum)"
    assert text.count(natural) == 1
    result = checked(text.replace(natural, f"1.442695f * ({natural})"), problem=MHA)
    assert result.verdict is Verdict.INCORRECT_NUMERICAL
    assert result.message.startswith("output LSE: 512 of 512 elements wrong, first at (0, 0, 0)")
    assert result.message.endswith("; constant ratio 1.4427 to the reference")
    by_name = {output.name: output for output in result.evidence.trials[0].outputs}
    assert (by_name["O"].bad_count, by_name["LSE"].bad_count) == (0, 512)


def test_a_vendor_library_opened_at_run_time_is_seen_in_the_process(checked):
    """A copy of the candidate itself under the library's name: the name is what is mapped."""
    body = """
  multiply(A, B, C);
  static void* handle = nullptr;
  if (!handle) {
    Dl_info me; dladdr((void*)&multiply, &me);
    FILE* from = fopen(me.dli_fname, "rb"); FILE* to = fopen("/tmp/libcublas.so.13", "wb");
    char block[4096]; size_t n;
    while ((n = fread(block, 1, sizeof block, from))) fwrite(block, 1, n, to);
    fclose(from); fclose(to);
    handle = dlopen("/tmp/libcublas.so.13", RTLD_NOW);
  }
"""
    result = checked(source(body, before="#include <dlfcn.h>\n#include <cstdio>\n"))
    assert result.verdict is Verdict.BANNED_LIBRARY
    assert result.message == "the process mapped libcublas.so.13, which is banned"


def test_it_blames_the_candidate_for_a_segmentation_fault(checked):
    result = checked(source("*(volatile int*)8 = 1;"))
    assert result.verdict is Verdict.RUNTIME_ERROR
    assert result.message == "ended by signal 11 (SIGSEGV)"


def test_an_exit_code_of_zero_proves_nothing(checked):
    result = checked(source("multiply(A, B, C); _exit(0);"))
    assert result.verdict is Verdict.RUNTIME_ERROR
    assert result.message == "the process ended by itself (exit code 0) during 'call'"


def test_it_kills_an_endless_call_at_the_limit(checked):
    result = checked(source('for (;;) asm volatile("");'))
    assert result.verdict is Verdict.TIMEOUT
    assert result.message.startswith("no answer to 'call' after 2 s, limit reached")


def test_a_flood_of_output_is_cut_and_changes_no_verdict(checked):
    body = (
        "multiply(A, B, C); char line[4096]; memset(line, 'x', 4096); line[4095] = '\\n';"
        "for (int i = 0; i < 2000; ++i) { ssize_t n = write(1, line, 4096); (void)n; }"
    )
    result = checked(source(body))
    assert result.verdict is Verdict.PASSED
    assert result.evidence.process.output_truncated
    assert len(result.evidence.process.output_tail) < 70_000


def test_an_answer_kept_for_an_address_is_caught(checked):
    body = "static const void* seen[9]; for (auto& s : seen) { if (s == A) return; "
    result = checked(source(body + "if (!s) { s = A; break; } } multiply(A, B, C);"))
    assert result.verdict is Verdict.INCORRECT_NUMERICAL


def test_a_result_that_depends_on_the_number_of_the_call_is_caught(checked):
    body = "static int n; multiply(A, B, C); if (++n == 4) C[7] = narrow(wide(C[7]) + 64);"
    result = checked(source(body))
    assert result.verdict is Verdict.INCORRECT_NUMERICAL
    expected = "two calls on equal inputs gave different outputs, beyond the tolerance"
    assert result.message == expected


FORGER = """
#include <sys/socket.h>
#include <sys/stat.h>
static void shout(const char* data, size_t size) {
  for (int fd = 3; fd < 64; ++fd) {
    struct stat s;
    if (fstat(fd, &s) == 0 && S_ISSOCK(s.st_mode)) send(fd, data, size, 0);
  }
}
"""


def test_garbage_on_the_judges_channel_is_the_candidates_own_trouble(checked):
    body = 'multiply(A, B, C); shout("PASSED\\n PASSED\\n", 15);'
    result = checked(source(body, before=FORGER))
    assert result.verdict is Verdict.RUNTIME_ERROR
    assert result.message.startswith("host process sent ")


def test_a_reply_forged_before_the_work_is_done_does_not_help(checked):
    forge = """
#include <cstdio>
#include <string>
static void forge(int number) {
  char line[4096] = {}; FILE* f = fopen("/proc/self/cmdline", "r");
  size_t n = fread(line, 1, sizeof line - 1, f); fclose(f);
  const char* id = line + n - 2; while (id[-1]) --id;
  std::string body = std::string("{\\"evaluation\\":\\"") + id +
      "\\",\\"kind\\":\\"done\\",\\"start\\":1,\\"end\\":2,\\"label\\":\\"x\\",\\"sequence\\":" +
      std::to_string(number) + "}";
  uint32_t size = __builtin_bswap32(body.size());
  std::string frame((char*)&size, 4); frame += body; shout(frame.data(), frame.size());
}
"""
    body = "static int n = 2; forge(++n); usleep(300000); multiply(A, B, C);"
    result = checked(source(body, before=FORGER + forge))
    assert result.verdict in (Verdict.INCORRECT_NUMERICAL, Verdict.RUNTIME_ERROR)
    assert result.evidence.trials == () or result.evidence.trials[0].outputs[0].unwritten_count > 0


REPLY = """
#include <string>
static void reply(int number, const char* fields) {
  char line[4096] = {}; int f = open("/proc/self/cmdline", O_RDONLY);
  ssize_t n = read(f, line, sizeof line - 1); close(f);
  const char* id = line + n - 2; while (id[-1]) --id;
  std::string body = std::string("{\\"evaluation\\":\\"") + id + "\\",\\"sequence\\":" +
      std::to_string(number) + "," + fields + "}";
  uint32_t size = __builtin_bswap32(body.size());
  std::string frame((char*)&size, 4); frame += body; shout(frame.data(), frame.size());
}
"""


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ('"kind":"harness_error","detail":"CUPTI broke"', "CUPTI broke"),
        ('"kind":"device_error","code":100,"detail":"no device"', "no device"),
        ('"kind":"broken","detail":"a\\u0000b\\ud800"', "a\N{REPLACEMENT CHARACTER}b?"),
    ],
)
def test_no_reply_makes_the_candidates_trouble_ours(checked, fields, message):
    text = fields.replace("\\", "\\\\").replace('"', '\\"')
    before = "#include <fcntl.h>\n" + FORGER + REPLY
    result = checked(source(f'reply(3, "{text}"); usleep(300000);', before=before))
    assert result.verdict is Verdict.RUNTIME_ERROR
    assert result.message == message


def test_a_constructor_that_crashes_is_the_candidates_own(checked):
    before = "__attribute__((constructor)) static void early() { abort(); }\n"
    result = checked(source("multiply(A, B, C);", before=before))
    assert result.verdict is Verdict.RUNTIME_ERROR
    assert result.message == "ended by signal 6 (SIGABRT)"


AHEAD = """
#include <atomic>
#include <thread>
struct Slot { const uint16_t *A, *B; uint16_t seen[4][64]; uint16_t C[65536]; };
static Slot slots[128]; static std::atomic<int> count;
static const uint16_t* edge(const Slot& s, int e) {  // the first and last elements of A and of B
  return (e & 1 ? s.B : s.A) + (e & 2 ? 65536 - 64 : 0);
}
static int fresh(const Slot& s) {
  int n = 0; for (int e = 0; e < 4; ++e) n += memcmp(s.seen[e], edge(s, e), 128) != 0;
  return n;
}
static bool known(const Slot& s) { return !fresh(s); }
static float a[65536], b[65536];
static void compute(Slot& s) {
  uint16_t seen[4][64];
  if (fresh(s) < 4) return;  // until both inputs are there to their ends
  for (int e = 0; e < 4; ++e) memcpy(seen[e], edge(s, e), sizeof seen[e]);
  for (int i = 0; i < 65536; ++i) { a[i] = wide(s.A[i]); b[i] = wide(s.B[i]); }
  for (int i = 0; i < 65536; ++i) {
    float sums[16] = {}, sum = 0; const float *x = a + i / 256 * 256, *y = b + i % 256 * 256;
    for (int k = 0; k < 256; k += 16)
      for (int j = 0; j < 16; ++j) sums[j] += x[k + j] * y[k + j];
    for (float part : sums) sum += part;
    s.C[i] = narrow(sum);
  }
  memcpy(s.seen, seen, sizeof seen);
}
static void watch() {
  for (;; usleep(200))
    for (int i = 0; i < count; ++i) if (!known(slots[i])) compute(slots[i]);
}
"""
LOOKS_UP = """
  static std::thread* watcher = new std::thread(watch); (void)watcher;
  int i = 0; while (i < count && slots[i].A != A) ++i;
  if (i == count) { slots[i].A = A; slots[i].B = B; ++count; }
  if (count == 2)  // slots lie side by side and are used in turn
    for (int64_t k = 2, step = slots[1].A - slots[0].A; k < 40; ++k, ++count)
      slots[count].A = slots[0].A + k * step, slots[count].B = slots[0].B + k * step;
  while (!known(slots[i])) usleep(50);
  memcpy(C, slots[i].C, sizeof slots[i].C);
"""


def test_work_done_before_the_call_is_contradicted_by_the_bracket(timed):
    """A thread computes as soon as inputs arrive; the timed call only copies the answer."""
    result = timed(source(LOOKS_UP, before=AHEAD))
    assert result.verdict is Verdict.INCONCLUSIVE, result.message
    assert result.evidence.speedup is None
    assert "on the judge's clock" in result.message
    assert all(call.bad_count == 0 for call in result.evidence.verified)


def test_the_candidate_stands_still_while_the_baseline_is_measured(built, bench):
    work = built(source("multiply(A, B, C);"))
    buffers = Buffers(work.problem, None, 3)
    with HostProcess(work, bench.sandbox, buffers.arena.memory, cupti=False) as host:

        def look() -> None:
            inside = processes_of(host._process.pid)
            assert len(inside) >= 3
            with host.frozen():
                assert {state_of(process) for process in inside} == {"T"}
            assert "T" not in {state_of(process) for process in inside}
            host.ask("settle", {}, SHORT_SECONDS)

        assert host.carry_out(look).ending is Ending.FINISHED
    buffers.close()


def state_of(process: int) -> str:
    return Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]


def test_the_judge_stays_well_after_everything_that_candidates_did(judge, checked):
    checked(source("abort();"))
    judge.examine()
    assert checked(source("multiply(A, B, C);")).verdict is Verdict.PASSED


def test_it_times_candidate_and_baseline_by_the_same_protocol(timed):
    result = timed(source("multiply(A, B, C);"))
    seen = result.evidence
    assert isinstance(seen, TimingEvidence)
    assert result.verdict in (Verdict.PASSED, Verdict.INCONCLUSIVE)
    assert seen.timer == "wall"
    assert len(seen.samples) == len(seen.baseline_samples) == 18
    assert all(0 < sample.span_ns <= sample.wall_ns for sample in seen.samples)
    assert all(call.bad_count == 0 for call in seen.verified)
    singles = [batch for batch in seen.batches if batch.call_count == 1]
    assert len(singles) == len(seen.batches) - len(singles) == 3


def test_a_timed_call_that_does_nothing_is_caught_among_the_verified(timed):
    body = "static int n; if (++n % 2) multiply(A, B, C);"
    result = timed(source(body))
    assert result.verdict is Verdict.INCORRECT_NUMERICAL
    assert "though the correctness stage passed" in result.message
    assert result.evidence.latency_ns is None


def test_the_library_that_runs_is_the_one_that_was_built(built, bench, judge):
    work = built(source("multiply(A, B, C);"))
    library = work.artifact("library")
    assert library is not None
    Path(work.folder / library.sha256).write_bytes(b"another library")
    from evaluator.records.verdicts import EvaluatorFault

    with pytest.raises(EvaluatorFault, match="expected SHA-256"):
        judge.check(work)


def test_both_stages_are_where_the_pipeline_looks_for_them(bench, judge, make_work):
    lent = Bench(sandbox=bench.sandbox, toolchain=bench.toolchain, cache=bench.cache, device=judge)
    work = make_work(source("multiply(A, B, C);"), target="host")
    for result in run_lane(work, lent, Lane.BUILD):
        work = work.with_result(result)
    stages = [result.stage for result in run_lane(work, lent, Lane.GPU)]
    assert stages == [Stage.CORRECTNESS, Stage.TIMING]
