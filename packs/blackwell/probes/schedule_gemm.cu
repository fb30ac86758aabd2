// The schedules warp-specialisation and tma-store as one kernel with its host side, and multicast as
// another: compiled for sm_100a and looked at, never run by us.
// C[8192, 7168] = A[8192, 5120] B[7168, 5120]^T, bf16, fp32 accumulation.
//
// pair of blocks   256 x 256 of C, k in steps of 64; block: A 128 x 64 and half of B 128 x 64 a stage
// stages           6 x 32 KiB = 192 KiB; staging of C 2 x 16 KiB; barriers 2 x 6 + 4
// tensor memory    2 accumulators of 256 columns
// warps            0-3 epilogue, 4 loads, 5 products
#include "../../hopper/templates/sync.cuh"

#include "../../hopper/templates/mbarrier.cuh"
#include "../../hopper/templates/tma.cuh"

#include "../templates/tma_pair.cuh"
#include "../templates/tmem.cuh"

#include "../templates/tcgen05.cuh"

#include "../templates/epilogue.cuh"

#include <cuda_bf16.h>

using namespace ptx;

namespace {

constexpr int M = 8192, N = 7168, K = 5120, STAGES = 6, GROUP = 8;
constexpr uint32_t A_BYTES = 128 * 64 * 2, B_BYTES = 128 * 64 * 2, C_BYTES = 128 * 64 * 2;
constexpr int ROWS = M / 256, COLUMNS = N / 256, TILES = ROWS * COLUMNS;
constexpr int SHARED = 1024 + STAGES * (A_BYTES + B_BYTES) + 2 * C_BYTES + 8 * (2 * STAGES + 4) + 16;
static_assert(ROWS % GROUP == 0 && SHARED <= 232448, "no partial tiles; fits a block");

struct Place {
  uint32_t a, b, c, full, empty, done, drained, slot;
};

__device__ Place place(uint32_t base) {
  Place p;
  p.a = base, p.b = p.a + STAGES * A_BYTES, p.c = p.b + STAGES * B_BYTES;
  p.full = p.c + 2 * C_BYTES, p.empty = p.full + 8 * STAGES;
  p.done = p.empty + 8 * STAGES, p.drained = p.done + 16, p.slot = p.drained + 16;
  return p;
}

// Tiles of GROUP rows, column by column: neighbours in time share B.
__device__ void corner(int tile, int& m, int& n) {
  const int group = tile / (GROUP * COLUMNS), inside = tile % (GROUP * COLUMNS);
  m = 256 * (group * GROUP + inside % GROUP), n = 256 * (inside / GROUP);
}

__global__ __cluster_dims__(2) __launch_bounds__(192, 1) void gemm_pair(
    const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
    const __grid_constant__ CUtensorMap map_c) {
  extern __shared__ uint8_t shared[];
  constexpr uint32_t IDESC = mma_idesc(256, 256, Elem::kBF16, Elem::kBF16);
  const Place at = place(align_up(smem_address(shared), 1024));
  const uint32_t rank = cluster_rank(), leader = pair_leader(rank);
  const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
  const int first = blockIdx.x / 2, step = gridDim.x / 2;
  if (warp == 5) tmem_alloc<2>(at.slot, 512), tmem_relinquish<2>();
  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; ++s) mbarrier_init(at.full + 8 * s, 1), mbarrier_init(at.empty + 8 * s, 1);
    for (int i = 0; i < 2; ++i) mbarrier_init(at.done + 8 * i, 1), mbarrier_init(at.drained + 8 * i, 8);
    fence_mbarrier_init();
  }
  tcgen05_fence_before();
  cluster_sync();
  tcgen05_fence_after();
  uint32_t tmem;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(tmem) : "r"(at.slot));

  int m, n;
  if (warp == 4 && elect_one()) {
    Ring<STAGES> ring;
    for (int tile = first; tile < TILES; tile += step) {
      corner(tile, m, n);
      for (int k = 0; k < K; k += 64, ring.advance()) {
        mbarrier_wait(at.empty + 8 * ring.stage, ring.phase ^ 1);
        if (rank == leader)
          mbarrier_arrive_expect(at.full + 8 * ring.stage, 2 * (A_BYTES + B_BYTES));
        const uint32_t bar = map_to_block(at.full + 8 * ring.stage, leader);
        tma_load_pair(at.a + ring.stage * A_BYTES, &map_a, bar, {k, m + 128 * int(rank)});
        tma_load_pair(at.b + ring.stage * B_BYTES, &map_b, bar, {k, n + 128 * int(rank)});
      }
    }
  } else if (warp == 5 && rank == leader && elect_one()) {
    Ring<STAGES> ring;
    Ring<2> acc;
    for (int tile = first; tile < TILES; tile += step, acc.advance()) {
      mbarrier_wait(at.drained + 8 * acc.stage, acc.phase ^ 1);
      tcgen05_fence_after();
      for (int k = 0; k < K; k += 64, ring.advance()) {
        mbarrier_wait(at.full + 8 * ring.stage, ring.phase);
        tcgen05_fence_after();
        mma_ss_row<MmaKind::kF16, 2>(tmem + 256 * acc.stage,
                                     tile_desc_k_major(at.a + ring.stage * A_BYTES),
                                     tile_desc_k_major(at.b + ring.stage * B_BYTES), IDESC, k > 0);
        tcgen05_commit_multicast<2>(at.empty + 8 * ring.stage, 3);
      }
      tcgen05_commit_multicast<2>(at.done + 8 * acc.stage, 3);
    }
  } else if (warp < 4) {
    Ring<2> acc;
    for (int tile = first; tile < TILES; tile += step, acc.advance()) {
      corner(tile, m, n);
      mbarrier_wait(at.done + 8 * acc.stage, acc.phase);
      tcgen05_fence_after();
#pragma unroll 1
      for (int piece = 0; piece < 4; ++piece) {
        uint32_t r[64];
        tmem_ld(r, tmem_address(tmem, 32 * warp, 256 * acc.stage + 64 * piece));
        tmem_wait_ld();
        if (piece == 3) {
          tcgen05_fence_before();
          __syncwarp();
          if (elect_one()) mbarrier_arrive_remote(at.drained + 8 * acc.stage, leader);
        }
        const uint32_t buffer = at.c + (piece & 1) * C_BYTES;
        if (threadIdx.x == 0) bulk_wait_read<1>();
        named_barrier_sync(1, 128);
        row_to_shared(buffer, threadIdx.x, 0, r);
        fence_async_shared();
        named_barrier_sync(1, 128);
        if (threadIdx.x == 0) {
          tma_store(&map_c, buffer, {n + 64 * piece, m + 128 * int(rank)});
          bulk_commit();
        }
      }
    }
    if (threadIdx.x == 0) bulk_wait<0>();
  }
  __syncwarp();
  tcgen05_fence_before();
  cluster_sync();
  tcgen05_fence_after();
  if (warp == 5) tmem_dealloc<2>(tmem, 512);
}

}  // namespace

// Loads and products of the schedule multicast: two blocks along m, CTAS = 1, one tile each.
__global__ __cluster_dims__(2) __launch_bounds__(192, 1) void gemm_multicast(
    const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b, int m,
    int n, uint32_t* out) {
  extern __shared__ uint8_t shared[];
  constexpr int RING = 4;
  constexpr uint32_t WHOLE_B = 256 * 64 * 2, IDESC = mma_idesc(128, 256, Elem::kBF16, Elem::kBF16);
  const uint32_t a = align_up(smem_address(shared), 1024), b = a + RING * A_BYTES;
  const uint32_t full = b + RING * WHOLE_B, empty = full + 8 * RING, done = empty + 8 * RING;
  const uint32_t slot = done + 8, rank = cluster_rank();
  const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0);
  if (warp == 5) tmem_alloc<1>(slot, 256), tmem_relinquish<1>();
  if (threadIdx.x == 0) {
    for (int s = 0; s < RING; ++s) mbarrier_init(full + 8 * s, 1), mbarrier_init(empty + 8 * s, 2);
    mbarrier_init(done, 1);
    fence_mbarrier_init();
  }
  tcgen05_fence_before();
  cluster_sync();
  tcgen05_fence_after();
  uint32_t tmem;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(tmem) : "r"(slot));
  if (warp == 4 && elect_one()) {
    Ring<RING> ring;
    for (int k = 0; k < K; k += 64, ring.advance()) {
      mbarrier_wait(empty + 8 * ring.stage, ring.phase ^ 1);
      const uint32_t bar = full + 8 * ring.stage;
      mbarrier_arrive_expect(bar, A_BYTES + WHOLE_B);
      tma_load(a + ring.stage * A_BYTES, &map_a, bar, {k, m + 128 * int(rank)});
      tma_load_multicast(b + ring.stage * WHOLE_B + rank * (WHOLE_B / 2), &map_b, bar,
                         {k, n + 128 * int(rank)}, 3);
    }
  } else if (warp == 5 && elect_one()) {
    Ring<RING> ring;
    for (int k = 0; k < K; k += 64, ring.advance()) {
      mbarrier_wait(full + 8 * ring.stage, ring.phase);
      tcgen05_fence_after();
      mma_ss_row<MmaKind::kF16, 1>(tmem, tile_desc_k_major(a + ring.stage * A_BYTES),
                                   tile_desc_k_major(b + ring.stage * WHOLE_B), IDESC, k > 0);
      tcgen05_commit_multicast<1>(empty + 8 * ring.stage, 3);
    }
    tcgen05_commit<1>(done);
  } else if (warp < 4) {
    mbarrier_wait(done, 0);
    tcgen05_fence_after();
    for (int c = 0; c < 256; c += 64) {
      uint32_t r[64];
      tmem_ld(r, tmem_address(tmem, 32 * warp, c));
      tmem_wait_ld();
      row_to_global(out + (threadIdx.x * 256 + c) / 2, r);
    }
  }
  __syncwarp();
  tcgen05_fence_before();
  cluster_sync();
  tcgen05_fence_after();
  if (warp == 5) tmem_dealloc<1>(tmem, 256);
}

extern "C" void run(const __nv_bfloat16* A, const __nv_bfloat16* B, __nv_bfloat16* C,
                    cudaStream_t stream) {
  CUtensorMap map_a, map_b, map_c;
  if (!make_bf16_map(&map_a, A, M, K, 2 * K, 128, 64) ||
      !make_bf16_map(&map_b, B, N, K, 2 * K, 128, 64) ||
      !make_bf16_map(&map_c, C, M, N, 2 * N, 128, 64) || !allow_shared_memory(gemm_pair, SHARED))
    return;
  int device = 0, processors = 0;
  if (!cuda_ok(cudaGetDevice(&device), "device") ||
      !cuda_ok(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), "SMs"))
    return;
  gemm_pair<<<processors / 2 * 2, 192, SHARED, stream>>>(map_a, map_b, map_c);
  cuda_ok(cudaGetLastError(), "launch");
}
