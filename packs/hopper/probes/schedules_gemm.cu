// The GEMM schedules as whole kernels: ../schedules/warp-specialisation.md, multicast.md,
// tma-store.md.
#include "probe.cuh"
#include "../templates/epilogue.cuh"
#include "../templates/mbarrier.cuh"
#include "../templates/sync.cuh"
#include "../templates/tma.cuh"
#include "../templates/wgmma.cuh"
#include <cuda_bf16.h>

using namespace ptx;

constexpr int M = 512, N = 512, K = 320, STAGES = 4, STAGE_BYTES = 49152;
constexpr int SHARED_BYTES = 1024 + STAGES * STAGE_BYTES + 4 * 8192 + 2 * STAGES * 8;

struct Tile {
  int row, column;
};

// The tile of a block: blocks of a cluster lie above each other.
template <int CLUSTER>
__device__ Tile tile_at(int index, int rank) {
  constexpr int ROWS = M / (128 * CLUSTER);
  return {(index % ROWS * CLUSTER + rank) * 128, index / ROWS * 256};
}

template <int CLUSTER>
__device__ void produce(const CUtensorMap* map_a, const CUtensorMap* map_b, uint32_t tiles,
                        uint32_t full, uint32_t empty, int rank) {
  Ring<STAGES> ring;
  for (int t = blockIdx.x / CLUSTER; t < M * N / (128 * 256 * CLUSTER); t += gridDim.x / CLUSTER) {
    const Tile tile = tile_at<CLUSTER>(t, rank);
    for (int k = 0; k < K / 64; ++k, ring.advance()) {
      const uint32_t bar = full + 8 * ring.stage, a = tiles + ring.stage * STAGE_BYTES;
      mbarrier_wait(empty + 8 * ring.stage, ring.phase ^ 1);
      mbarrier_arrive_expect(bar, STAGE_BYTES);
      tma_load(a, map_a, bar, {64 * k, tile.row});
      if constexpr (CLUSTER == 1)
        tma_load(a + 16384, map_b, bar, {64 * k, tile.column});
      else
        tma_load_multicast(a + 16384 + rank * 16384, map_b, bar, {64 * k, tile.column + 128 * rank},
                           3);
    }
  }
}

template <int CLUSTER>
__device__ void release(uint32_t bar, int thread) {
  if constexpr (CLUSTER == 1) {
    if (thread == 0) mbarrier_arrive(bar);
  } else {
    if (thread < CLUSTER) mbarrier_arrive_remote(bar, thread);
  }
}

template <int COUNT>
__device__ void store(const float (&d)[COUNT], const CUtensorMap* map_c, uint32_t staging,
                      Tile tile, int consumer, int thread) {
#pragma unroll
  for (int piece = 0; piece < COUNT / 32; ++piece) {
    const uint32_t buffer = staging + (piece % 2) * 8192;
    if (thread == 0) bulk_wait_read<1>();
    named_barrier_sync(1 + consumer, 128);
    acc_to_shared(buffer, d, piece, thread);
    fence_async_shared();
    named_barrier_sync(1 + consumer, 128);
    if (thread == 0) {
      tma_store(map_c, buffer, {tile.column + 64 * piece, tile.row + 64 * consumer});
      bulk_commit();
    }
  }
}

template <int CLUSTER>
__device__ void consume(const CUtensorMap* map_c, uint32_t tiles, uint32_t staging, uint32_t full,
                        uint32_t empty, int rank, int consumer, int thread) {
  Ring<STAGES> ring;
  float d[128];
  for (int t = blockIdx.x / CLUSTER; t < M * N / (128 * 256 * CLUSTER); t += gridDim.x / CLUSTER) {
    int before = 0;
    for (int k = 0; k < K / 64; ++k) {
      mbarrier_wait(full + 8 * ring.stage, ring.phase);
      const uint32_t a = tiles + ring.stage * STAGE_BYTES;
      const uint64_t left = k_major(a + consumer * 8192), right = k_major(a + 16384);
      wgmma_fence();
#pragma unroll
      for (int i = 0; i < 4; ++i)
        wgmma_ss<256>(d, advance(left, 32 * i), advance(right, 32 * i), k | i);
      wgmma_commit();
      if (k > 0) {
        wgmma_wait<1>();
        release<CLUSTER>(empty + 8 * before, thread);
      }
      before = ring.stage;
      ring.advance();
    }
    wgmma_wait<0>();
    release<CLUSTER>(empty + 8 * before, thread);
    wgmma_settle(d);
    store(d, map_c, staging + consumer * 16384, tile_at<CLUSTER>(t, rank), consumer, thread);
  }
  if (thread == 0) bulk_wait<0>();
}

template <int CLUSTER>
__device__ void gemm(const CUtensorMap* map_a, const CUtensorMap* map_b, const CUtensorMap* map_c) {
  extern __shared__ uint8_t raw[];
  const uint32_t tiles = align_up(smem_address(raw), 1024);
  const uint32_t staging = tiles + STAGES * STAGE_BYTES;
  const uint32_t full = staging + 4 * 8192, empty = full + 8 * STAGES;
  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; ++s) {
      mbarrier_init(full + 8 * s, 1);
      mbarrier_init(empty + 8 * s, 2 * CLUSTER);
    }
    fence_mbarrier_init();
  }
  if constexpr (CLUSTER == 1)
    __syncthreads();
  else
    cluster_sync();
  const int group = warpgroup_index(), rank = CLUSTER == 1 ? 0 : int(cluster_rank());
  if (group == 0) {
    setmaxnreg_dec<40>();
    if (threadIdx.x == 0) produce<CLUSTER>(map_a, map_b, tiles, full, empty, rank);
  } else {
    setmaxnreg_inc<232>();
    consume<CLUSTER>(map_c, tiles, staging, full, empty, rank, group - 1, threadIdx.x % 128);
  }
  if constexpr (CLUSTER > 1) {
    __syncwarp();
    cluster_sync();
  }
}

__global__ __launch_bounds__(384, 1) void schedule_warp_specialisation(
    const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
    const __grid_constant__ CUtensorMap c) {
  gemm<1>(&a, &b, &c);
}

__global__ __cluster_dims__(2, 1, 1)
    __launch_bounds__(384, 1) void schedule_multicast(const __grid_constant__ CUtensorMap a,
                                                      const __grid_constant__ CUtensorMap b,
                                                      const __grid_constant__ CUtensorMap c) {
  gemm<2>(&a, &b, &c);
}

template <class Kernel>
std::string product(Kernel* kernel, uint32_t b_rows) {
  Array<__nv_bfloat16> a(M * K), b(N * K), c(M * N);
  for (int i = 0; i < M * K; ++i) a[i] = __float2bfloat16(small(i, 71, 1));
  for (int i = 0; i < N * K; ++i) b[i] = __float2bfloat16(small(i, 72, 1));
  a.push(), b.push();
  CUtensorMap map_a, map_b, map_c;
  if (!make_bf16_map(&map_a, a.data, M, K, 2 * K, 128, 64) ||
      !make_bf16_map(&map_b, b.data, N, K, 2 * K, b_rows, 64) ||
      !make_bf16_map(&map_c, c.data, M, N, 2 * N, 64, 64) ||
      !allow_shared_memory(kernel, SHARED_BYTES))
    return "refused";
  kernel<<<4, 384, SHARED_BYTES>>>(map_a, map_b, map_c);
  c.pull();
  std::vector<float> seen(M * N), expected(M * N);
  for (int i = 0; i < M * N; ++i) {
    float sum = 0;
    for (int k = 0; k < K; ++k) sum += float(a[i / N * K + k]) * float(b[i % N * K + k]);
    seen[i] = c[i], expected[i] = __float2bfloat16(sum);
  }
  return compare(seen, expected);
}

int main() {
  probe("schedule_warp_specialisation", {"Ring", "wgmma_ss", "tma_load", "setmaxnreg_inc"},
        [] { return product(schedule_warp_specialisation, 256); });
  probe("schedule_multicast", {"tma_load_multicast", "mbarrier_arrive_remote", "acc_to_shared"},
        [] { return product(schedule_multicast, 128); });
  return failures != 0;
}
