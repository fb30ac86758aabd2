# Reads gigabytes beyond the end of A.
import torch
import triton
import triton.language as tl


@triton.jit
def gemm(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    inner = tl.arange(0, BK)
    a_tile = a + 2147483647 + rows[:, None] * K + inner[None, :]
    b_tile = b + columns[None, :] * K + inner[:, None]
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for _ in range(0, K, BK):
        total = tl.dot(tl.load(a_tile), tl.load(b_tile), total)
        a_tile += BK
        b_tile += BK
    tl.store(c + rows[:, None] * N + columns[None, :], total.to(c.dtype.element_ty))


def run(A: torch.Tensor, B: torch.Tensor, C: torch.Tensor):
    M, K = A.shape
    N = B.shape[0]
    grid = lambda meta: (triton.cdiv(M, meta["BM"]), triton.cdiv(N, meta["BN"]))
    gemm[grid](A, B, C, M, N, K, BM=64, BN=64, BK=64, num_warps=4, num_stages=3)
