# GEMM in Triton: C[M, N] = A[M, K] B[N, K]^T, bf16 with fp32 sums.
# Tiles travel by TMA (host-side descriptors); tl.dot is wgmma on sm_90a, tcgen05 on sm_100a.
# Sizes are constants of the kernel: where ptxas cannot see that the loop runs, it serialises wgmma.
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

TILE_M, TILE_N, TILE_K = 128, 256, 64
GROUP = 8  # rows of tiles that share their columns of B in L2
WARPS, STAGES = 8, 4


@triton.jit
def gemm(
    a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP: tl.constexpr,
):  # fmt: skip
    tile = tl.program_id(0)
    tiles_m, tiles_n = tl.cdiv(M, TILE_M), tl.cdiv(N, TILE_N)
    first = tile // (GROUP * tiles_n) * GROUP
    height = min(tiles_m - first, GROUP)
    row = (first + tile % height) * TILE_M
    column = tile % (GROUP * tiles_n) // height * TILE_N
    total = tl.zeros((TILE_M, TILE_N), dtype=tl.float32)
    for k in range(0, K, TILE_K):
        total = tl.dot(a.load([row, k]), b.load([column, k]).T, total)
    c.store([row, column], total.to(tl.bfloat16))


def run(A: torch.Tensor, B: torch.Tensor, C: torch.Tensor):
    (M, K), N = A.shape, B.shape[0]
    a = TensorDescriptor.from_tensor(A, [TILE_M, TILE_K])
    b = TensorDescriptor.from_tensor(B, [TILE_N, TILE_K])
    c = TensorDescriptor.from_tensor(C, [TILE_M, TILE_N])
    tiles = triton.cdiv(M, TILE_M) * triton.cdiv(N, TILE_N)
    gemm[(tiles,)](
        a, b, c, M, N, K, TILE_M, TILE_N, TILE_K, GROUP, num_warps=WARPS, num_stages=STAGES
    )  # fmt: skip
