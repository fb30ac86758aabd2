# Attention forward in Triton: O = softmax(Q K^T / sqrt(D)) V, LSE = log of the exponentials' sum.
# One program per block of queries; keys and values travel by TMA. Not causal, D = 128, bf16.
import math

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

QUERIES, KEYS = 128, 128
WARPS, STAGES = 8, 3


@triton.jit
def attention(
    q, k, v, o, lse, scale, length: tl.constexpr,
    QUERIES: tl.constexpr, KEYS: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    slice_start = tl.program_id(1) * length
    row = slice_start + tl.program_id(0) * QUERIES
    queries = q.load([row, 0])
    highest = tl.full((QUERIES,), float("-inf"), dtype=tl.float32)
    weight = tl.zeros((QUERIES,), dtype=tl.float32)
    total = tl.zeros((QUERIES, D), dtype=tl.float32)
    for start in range(0, length, KEYS):
        at = slice_start + start
        scores = tl.dot(queries, k.load([at, 0]).T)
        peak = tl.maximum(highest, tl.max(scores, 1) * scale)
        shares = tl.math.exp2(scores * scale - peak[:, None])
        fade = tl.math.exp2(highest - peak)
        weight = weight * fade + tl.sum(shares, 1)
        total = total * fade[:, None]
        total = tl.dot(shares.to(tl.bfloat16), v.load([at, 0]), total)
        highest = peak
    o.store([row, 0], (total / weight[:, None]).to(tl.bfloat16))
    natural = (highest + tl.math.log2(weight)) * 0.6931471805599453
    tl.store(lse + row + tl.arange(0, QUERIES), natural)


def run(
    Q: torch.Tensor, K: torch.Tensor, V: torch.Tensor, O: torch.Tensor, LSE: torch.Tensor
):  # fmt: skip
    batch, heads, length, D = Q.shape
    rows = batch * heads * length
    q = TensorDescriptor.from_tensor(Q.view(rows, D), [QUERIES, D])
    k = TensorDescriptor.from_tensor(K.view(rows, D), [KEYS, D])
    v = TensorDescriptor.from_tensor(V.view(rows, D), [KEYS, D])
    o = TensorDescriptor.from_tensor(O.view(rows, D), [QUERIES, D])
    scale = 1 / math.sqrt(D) * math.log2(math.e)  # exponentials are powers of two
    grid = (length // QUERIES, batch * heads)
    attention[grid](
        q, k, v, o, LSE, scale, length, QUERIES, KEYS, D, num_warps=WARPS, num_stages=STAGES
    )  # fmt: skip
