# GEMM in Triton: C[M, N] = A[M, K] B[N, K]^T, bf16 with fp32 sums, one program a multiprocessor.
# Tiles travel by TMA (host-side descriptors); tl.dot is wgmma on sm_90a, tcgen05 on sm_100a.
# Sizes are constants of the kernel: where ptxas cannot see that the loop runs, it serialises wgmma.
import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

TILE_M, TILE_N, TILE_K = 128, 256, 64
GROUP = 8  # rows of tiles that share their columns of B in L2
WARPS, STAGES = 8, 3
FLATTEN = True  # the loads of the next tile start before the store of this one


@triton.jit
def gemm(
    a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
    TILE_M: tl.constexpr, TILE_N: tl.constexpr, TILE_K: tl.constexpr, GROUP: tl.constexpr,
    PROGRAMS: tl.constexpr, FLATTEN: tl.constexpr,
):  # fmt: skip
    tiles_m: tl.constexpr = M // TILE_M
    tiles_n: tl.constexpr = N // TILE_N
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, PROGRAMS, flatten=FLATTEN):
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
    programs = torch.cuda.get_device_properties(A.device).multi_processor_count
    gemm[(programs,)](
        a, b, c, M, N, K, TILE_M, TILE_N, TILE_K, GROUP, programs, FLATTEN,
        num_warps=WARPS, num_stages=STAGES,
    )  # fmt: skip
