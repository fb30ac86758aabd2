"""GQA and backward candidates on `host`, end to end: integers, scalars, -inf rows, many outputs."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from evaluator.bench import Bench
from evaluator.judge.judge import Judge
from evaluator.judge.measuring import Plan
from evaluator.pipeline import run_lane
from evaluator.problems.gqa import Heads, paged_prefill
from evaluator.records.verdicts import Lane, Verdict
from evaluator.stages import correctness
from evaluator.targets import find_target
from evaluator.work import Work

DECODE = "gqa_paged_decode_h6_kv2_d64_ps1_small"
PREFILL = "gqa_paged_prefill_causal_h6_kv2_d64_ps1_small"
RAGGED = "gqa_ragged_prefill_causal_h4_kv2_d64_small"
BACKWARD = "mha_bwd_d64_causal_small"
PLAN = Plan(trials=2, warmup=1, calls=4, verified=2, bursts=1, singles=1)
# Two rows of the first sequence come before any of its keys, and see none.
UNSEEN = paged_prefill(
    Heads(query=2, kv=1, dimension=8), query_lengths=(5,), kv_lengths=(3,), pages=9, small=True
)

HEAD = """
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>
static float wide(uint16_t v) {
  uint32_t b = uint32_t(v) << 16; float f; memcpy(&f, &b, 4); return f;
}
static uint16_t narrow(float f) {
  uint32_t b; memcpy(&b, &f, 4); return uint16_t((b + 0x7fff + ((b >> 16) & 1)) >> 16);
}
// One query row of one head: keys and values at place(0) .. place(seen - 1).
template <class Place>
static void attend(const uint16_t* q, const uint16_t* k, const uint16_t* v, int seen, float scale,
                   uint16_t* out, float* lse, Place place) {
  std::vector<float> score(seen > 0 ? seen : 0), sum(D, 0.f);
  float top = -INFINITY, total = 0;
  for (int j = 0; j < seen; ++j) {
    float s = 0;
    for (int d = 0; d < D; ++d) s += wide(q[d]) * wide(k[place(j) + d]);
    score[j] = s * scale;
    top = std::fmax(top, score[j]);
  }
  for (int j = 0; j < seen; ++j) {
    float p = std::exp(score[j] - top);
    total += p;
    for (int d = 0; d < D; ++d) sum[d] += p * wide(v[place(j) + d]);
  }
  for (int d = 0; d < D; ++d) out[d] = narrow(seen > 0 ? sum[d] / total : EMPTY_OUT);
  *lse = seen > 0 ? LOG(total) + top * PER : EMPTY_LSE;
}
"""
PAGED_DECODE = """
extern "C" void run(const uint16_t* q, const uint16_t* k, const uint16_t* v, const int32_t* ends,
                    const int32_t* pages, float scale, uint16_t* out, float* lse) {
  BEFORE
  for (int s = 0; s < 7; ++s)
    for (int h = 0; h < 6; ++h)
      attend(q + (s * 6 + h) * D, k, v, ends[s + 1] - ends[s], scale, out + (s * 6 + h) * D,
             lse + s * 6 + h, [&](int j) { return (PAGE(ends[s] + j) * 2 + h / 3) * D; });
  AFTER
}
"""
PAGED_PREFILL = """
extern "C" void run(const uint16_t* q, const uint16_t* k, const uint16_t* v, const int32_t* rows,
                    const int32_t* ends, const int32_t* pages, float scale, uint16_t* out,
                    float* lse) {
  for (int s = 0; s < SEQUENCES; ++s)
    for (int r = rows[s]; r < rows[s + 1]; ++r)
      for (int h = 0; h < HEADS; ++h) {
        int shift = (ends[s + 1] - ends[s]) - (rows[s + 1] - rows[s]);
        attend(q + (r * HEADS + h) * D, k, v, r - rows[s] + 1 + shift, scale,
               out + (r * HEADS + h) * D, lse + r * HEADS + h,
               [&](int j) { return (pages[ends[s] + j] * KV + h / (HEADS / KV)) * D; });
      }
}
"""
RAGGED_PREFILL = """
extern "C" void run(const uint16_t* q, const uint16_t* k, const uint16_t* v, const int32_t* rows,
                    const int32_t* ends, float scale, uint16_t* out, float* lse) {
  for (int s = 0; s < 5; ++s)
    for (int r = rows[s]; r < rows[s + 1]; ++r)
      for (int h = 0; h < 4; ++h)
        attend(q + (r * 4 + h) * D, k, v, r - rows[s] + 1, scale, out + (r * 4 + h) * D,
               lse + r * 4 + h, [&](int j) { return ((ends[s] + j) * 2 + h / 2) * D; });
}
"""
GRADIENTS = """
extern "C" void run(const uint16_t* Q, const uint16_t* K, const uint16_t* V, const uint16_t* O,
                    const uint16_t* dO, const float* L, uint16_t* dQ, uint16_t* dK, uint16_t* dV) {
  const int S = 256;
  for (int h = 0; h < 2; ++h) {
    const int at = h * S * D;
    std::vector<float> q(S * D), k(S * D), v(S * D);
    for (int i = 0; i < S; ++i) {
      float row_sum = 0;
      for (int d = 0; d < D; ++d) row_sum += wide(dO[at + i * D + d]) * wide(O[at + i * D + d]);
      for (int j = 0; j <= i; ++j) {
        float s = 0, g = 0;
        for (int d = 0; d < D; ++d) {
          s += wide(Q[at + i * D + d]) * wide(K[at + j * D + d]);
          g += wide(dO[at + i * D + d]) * wide(V[at + j * D + d]);
        }
        float p = std::exp(s * 0.125f - L[h * S + i]), ds = p * (g - row_sum) * 0.125f;
        for (int d = 0; d < D; ++d) {
          q[i * D + d] += ds * wide(K[at + j * D + d]);
          k[j * D + d] += ds * wide(Q[at + i * D + d]);
          v[j * D + d] += p * wide(dO[at + i * D + d]);
        }
      }
    }
    for (int i = 0; i < S * D; ++i) {
      dQ[at + i] = narrow(q[i]); dK[at + i] = narrow(k[i]); dV[at + i] = narrow(v[i]);
    }
  }
  AFTER
}
"""


def source(body: str, **defined: object) -> str:
    """`body` after its head, with macros; what is not told is what is right."""
    right: dict[str, object] = {
        "D": 64,
        "LOG(x)": "std::log2(x)",
        "PER": "1.44269504f",
        "EMPTY_OUT": "0.f",
        "EMPTY_LSE": "-INFINITY",
        "PAGE(i)": "pages[i]",
        "BEFORE": "",
        "AFTER": "",
        "SEQUENCES": 3,
        "HEADS": 6,
        "KV": 2,
    }
    lines = [f"#define {name} {value}" for name, value in {**right, **defined}.items()]
    return "\n".join(lines) + HEAD + body


@pytest.fixture(scope="module")
def judge(bench: Bench) -> Judge:
    return Judge(find_target("host"), bench.sandbox, bench.toolchain, call_seconds=5.0, plan=PLAN)


@pytest.fixture
def lent(bench: Bench, judge: Judge) -> Bench:
    return Bench(sandbox=bench.sandbox, toolchain=bench.toolchain, device=judge)


@pytest.fixture
def built(bench: Bench, make_work) -> Callable[..., Work]:
    def build(text: str, problem: str) -> Work:
        work: Work = make_work(text, target="host", problem=problem)
        for result in run_lane(work, bench, Lane.BUILD):
            assert result.passed, result.message
            work = work.with_result(result)
        return work

    return build


@pytest.fixture
def checked(built, lent: Bench):
    return lambda text, problem: correctness.run(built(text, problem), lent)


@pytest.mark.parametrize(("body", "problem"), [(RAGGED_PREFILL, RAGGED), (PAGED_PREFILL, PREFILL)])
def test_a_plain_kernel_passes_on_ragged_and_paged_sequences(checked, body, problem):
    result = checked(source(body), problem)
    assert result.verdict is Verdict.PASSED, result.message
    assert [output.name for output in result.evidence.trials[0].outputs] == ["output", "lse"]
    assert all(
        output.rms_error_to_fp32 < 3e-3
        for trial in result.evidence.trials
        for output in trial.outputs
    )


def test_a_plain_kernel_passes_on_paged_decode_and_is_timed(built, lent, judge):
    work = built(source(PAGED_DECODE), DECODE)
    checked = correctness.run(work, lent)
    assert checked.verdict is Verdict.PASSED, checked.message
    timed = judge.time(work)
    assert len(timed.samples) == 8
    assert {call.bad_count for call in timed.verified} == {0}
    assert timed.baseline.call == "the reference itself"


def test_a_natural_logarithm_is_told_by_its_ratio(checked):
    result = checked(source(PAGED_DECODE, PER="1.f", **{"LOG(x)": "std::log(x)"}), DECODE)
    assert result.verdict is Verdict.INCORRECT_NUMERICAL
    assert result.message.startswith("output lse: 42 of 42 elements wrong, first at (0, 0)")
    assert result.message.endswith("; constant ratio 0.6931 to the reference")


def test_page_numbers_must_be_read(checked):
    result = checked(source(PAGED_DECODE, **{"PAGE(i)": "(i)"}), DECODE)
    assert result.verdict is Verdict.INCORRECT_NUMERICAL
    assert result.message.startswith("output output: ")


@pytest.mark.parametrize(("kept", "count"), [("ends", 8), ("pages", 801)])
def test_offsets_and_pages_of_the_first_call_do_not_serve_the_next(checked, kept, count):
    """Both change with each call, within their rules: 7 lengths in order, 801 of 1500 pages."""
    before = f"static std::vector<int32_t> first({kept}, {kept} + {count}); {kept} = first.data();"
    result = checked(source(PAGED_DECODE, BEFORE=before), DECODE)
    assert result.verdict is Verdict.INCORRECT_NUMERICAL
    first, *later = result.evidence.trials
    assert [output.bad_count for output in first.outputs] == [0, 0]
    assert all(trial.outputs[0].bad_count > 300 for trial in later)


def test_a_changed_page_number_is_a_changed_input(checked):
    after = "const_cast<int32_t*>(pages)[800] += 1;"
    result = checked(source(PAGED_DECODE, AFTER=after), DECODE)
    assert result.verdict is Verdict.INPUT_MUTATED
    assert result.message == "input kv_indices changed during the call; inputs are const"


def test_a_write_behind_the_offsets_is_seen(checked):
    after = "const_cast<int32_t*>(ends)[8] ^= 1;"
    result = checked(source(PAGED_DECODE, AFTER=after), DECODE)
    assert result.verdict is Verdict.OUT_OF_BOUNDS_WRITE
    assert result.message.startswith("wrote outside of kv_indptr in trial 0")


def unseen(built, lent, **defined: object):
    text = source(PAGED_PREFILL, D=8, SEQUENCES=1, HEADS=2, KV=1, **defined)
    return correctness.run(replace(built(text, PREFILL), problem=UNSEEN), lent)


def test_rows_that_see_no_key_are_minus_infinity_and_zero(built, lent):
    result = unseen(built, lent)
    assert result.verdict is Verdict.PASSED, result.message
    output, lse = result.evidence.trials[0].outputs
    assert (output.bad_count, lse.bad_count, lse.element_count) == (0, 0, 10)
    assert lse.reference_nan_count == 0


@pytest.mark.parametrize("empty", ["-1e30f", "NAN"])
def test_no_other_value_is_minus_infinity(built, lent, empty):
    result = unseen(built, lent, EMPTY_LSE=empty)
    assert result.verdict is Verdict.INCORRECT_NUMERICAL
    output, lse = result.evidence.trials[0].outputs
    assert (output.bad_count, lse.bad_count, lse.first_bad_index) == (0, 4, (0, 0))


def test_nan_in_a_row_without_keys_is_wrong_where_the_reference_has_zero(built, lent):
    result = unseen(built, lent, EMPTY_OUT="NAN")
    assert result.verdict is Verdict.INCORRECT_NUMERICAL
    output, lse = result.evidence.trials[0].outputs
    assert (output.nonfinite_count, lse.bad_count) == (2 * 2 * 8, 0)


def test_a_plain_backward_pass_passes_on_inputs_of_one_forward_pass(checked):
    result = checked(source(GRADIENTS), BACKWARD)
    assert result.verdict is Verdict.PASSED, result.message
    names = [output.name for output in result.evidence.trials[0].outputs]
    assert names == ["dQ", "dK", "dV"]


def test_one_wrong_output_of_three_is_named(checked):
    result = checked(source(GRADIENTS, AFTER="dK[70] ^= 0x4000;"), BACKWARD)
    assert result.verdict is Verdict.INCORRECT_NUMERICAL
    assert result.message.startswith("output dK: 1 of 32768 elements wrong, first at (0, 0, 1, 6)")
    bad = {output.name: output.bad_count for output in result.evidence.trials[0].outputs}
    assert bad == {"dQ": 0, "dK": 1, "dV": 0}
