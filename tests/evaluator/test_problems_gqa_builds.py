"""Integers and the scale reach CUDA and Triton kernels: the build lane with the real compilers."""

from evaluator.pipeline import run_lane
from evaluator.problems import find_problem, prototype
from evaluator.records.verdicts import Lane

DECODE = "gqa_paged_decode_h24_kv8_d128_ps1"
TRITON = """\
import triton
import triton.language as tl


@triton.jit
def decode(q, k, v, ends, pages, scale, out, lse, HEADS: tl.constexpr, KV: tl.constexpr,
           D: tl.constexpr, BLOCK: tl.constexpr):
    s, h = tl.program_id(0), tl.program_id(1)
    d, group = tl.arange(0, D), HEADS // KV
    first, end = tl.load(ends + s), tl.load(ends + s + 1)
    row = tl.load(q + (s * HEADS + h) * D + d).to(tl.float32)
    top, total = -float("inf"), 0.0
    acc = tl.zeros((D,), tl.float32)
    for start in range(first, end, BLOCK):
        at = start + tl.arange(0, BLOCK)
        page = tl.load(pages + at, mask=at < end, other=0).to(tl.int64)
        place = (page * KV + h // group)[:, None] * D + d[None, :]
        keys = tl.load(k + place, mask=(at < end)[:, None], other=0.0).to(tl.float32)
        score = tl.where(at < end, tl.sum(keys * row[None, :], axis=1) * scale, -float("inf"))
        new = tl.maximum(top, tl.max(score, axis=0))
        p = tl.exp(score - new)
        values = tl.load(v + place, mask=(at < end)[:, None], other=0.0).to(tl.float32)
        acc = acc * tl.exp(top - new) + tl.sum(p[:, None] * values, axis=0)
        total = total * tl.exp(top - new) + tl.sum(p, axis=0)
        top = new
    tl.store(out + (s * HEADS + h) * D + d, (acc / total).to(tl.bfloat16))
    tl.store(lse + s * HEADS + h, (top + tl.log(total)) * 1.4426950408889634)


def run(q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale, output, lse):
    batch, heads, d = q.shape
    kv = k_cache.shape[2]
    decode[(batch, heads)](q, k_cache, v_cache, kv_indptr, kv_indices, sm_scale, output, lse,
                           HEADS=heads, KV=kv, D=d, BLOCK=32)
"""


def test_the_cuda_prototype_builds_as_it_stands(bench, make_work):
    work = make_work(prototype(find_problem(DECODE), "c", "cuda"), problem=DECODE)
    for result in run_lane(work, bench, Lane.BUILD):
        assert result.passed, result.message
        work = work.with_result(result)
    assert work.artifact("library") is not None


def test_a_triton_kernel_takes_offsets_pages_and_the_scale(bench, make_work):
    work = make_work(TRITON, problem=DECODE, entry="kernel.py")
    for result in run_lane(work, bench, Lane.BUILD):
        assert result.passed, result.message
        work = work.with_result(result)
    assert work.artifact("library") is not None
