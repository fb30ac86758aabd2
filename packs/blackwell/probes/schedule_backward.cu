// The schedules fa4-backward and fa4-backward-two-kernels (its kernel for dQ): compiled for sm_100a and
// looked at, never run by us. bf16, d = 128, no mask; dK and dV leave by row_to_global for shortness.
#include "../../hopper/templates/sync.cuh"

#include "../../hopper/templates/fastmath.cuh"
#include "../../hopper/templates/mbarrier.cuh"
#include "../../hopper/templates/tma.cuh"

#include "../templates/tmem.cuh"

#include "../templates/tcgen05.cuh"

#include "../templates/epilogue.cuh"
#include "../templates/softmax.cuh"

using namespace ptx;

constexpr uint32_t TILE = 128 * 128 * 2;
constexpr uint32_t SS = mma_idesc(128, 128, Elem::kBF16, Elem::kBF16);
constexpr uint32_t SB = mma_idesc(128, 128, Elem::kBF16, Elem::kBF16, Acc::kF32, false, true);
constexpr uint32_t AB = mma_idesc(128, 128, Elem::kBF16, Elem::kBF16, Acc::kF32, true, true);

__device__ inline uint32_t load_slot(uint32_t slot) {
  uint32_t value;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(slot));
  return value;
}

__device__ inline void load_tile(uint32_t dst, const CUtensorMap* map, uint32_t bar, int row) {
  for (int h = 0; h < 2; ++h) tma_load(dst + 16384 * h, map, bar, {64 * h, row});
}

// D = A B^T, both K-major with k = d = 128: two lines of 64.
__device__ inline void product_over_d(uint32_t d, uint32_t a, uint32_t b) {
  for (int h = 0; h < 2; ++h)
    mma_ss_row<MmaKind::kF16, 1>(d, tile_desc_k_major(a + 16384 * h),
                                 tile_desc_k_major(b + 16384 * h), SS, h > 0);
}

__device__ inline uint64_t step(uint32_t tile, int k) {
  return tile_desc_advance(tile_desc_mn_major(tile, 16384), 2048 * k);
}

// Shared memory: K, V, Q[2], dO, dS, staging of dQ, LSE and delta of two tiles, barriers.
struct Place {
  uint32_t k, v, q, d_o, ds, staging, rows, kv_full, q_full, q_empty, do_full, do_empty, s_full,
      dp_full, p_ready, ds_ready, dq_full, dq_empty, all_done, slot;
  __device__ explicit Place(uint32_t base) {
    k = base, v = k + TILE, q = v + TILE, d_o = q + 2 * TILE, ds = d_o + TILE, staging = ds + TILE;
    rows = staging + 16384, kv_full = rows + 2048, q_full = kv_full + 8, q_empty = q_full + 16;
    do_full = q_empty + 16, do_empty = do_full + 8, s_full = do_empty + 8, dp_full = s_full + 8;
    p_ready = dp_full + 8, ds_ready = p_ready + 8, dq_full = ds_ready + 8, dq_empty = dq_full + 8;
    all_done = dq_empty + 8, slot = all_done + 8;
  }
};
constexpr int SHARED = 1024 + 6 * TILE + 16384 + 2048 + 136 + 16;
static_assert(SHARED <= 232448, "fits a block");

__device__ void products(const Place& at, uint32_t tmem, int tiles) {
  Ring<2> ring;
  mbarrier_wait(at.kv_full, 0);
  mbarrier_wait(at.q_full, 0);
  tcgen05_fence_after();
  product_over_d(tmem, at.k, at.q);
  tcgen05_commit<1>(at.s_full);
  mbarrier_wait(at.do_full, 0);
  product_over_d(tmem + 128, at.v, at.d_o);
  tcgen05_commit<1>(at.dp_full);
  for (int j = 0; j < tiles; ++j) {
    const int stage = ring.stage;
    mbarrier_wait(at.p_ready, j & 1);
    tcgen05_fence_after();
    for (int k = 0; k < 8; ++k)
      mma_ts<MmaKind::kF16, 1>(tmem + 256, tmem + 8 * k, step(at.d_o, k), SB, j > 0 || k > 0);
    tcgen05_commit<1>(at.do_empty);
    ring.advance();
    if (j + 1 < tiles) {
      mbarrier_wait(at.q_full + 8 * ring.stage, ring.phase);
      product_over_d(tmem, at.k, at.q + TILE * ring.stage);
      tcgen05_commit<1>(at.s_full);
    }
    mbarrier_wait(at.ds_ready, j & 1);
    tcgen05_fence_after();
    for (int k = 0; k < 8; ++k)
      mma_ss<MmaKind::kF16, 1>(
          tmem + 384,
          tile_desc_advance(tile_desc_k_major(at.ds + 16384 * (k / 4)), 32 * (k % 4)),
          step(at.q + TILE * stage, k), SB, j > 0 || k > 0);
    tcgen05_commit<1>(at.q_empty + 8 * stage);
    for (int k = 0; k < 8; ++k)
      mma_ss<MmaKind::kF16, 1>(tmem + 128, step(at.ds, k), step(at.k, k), AB, k > 0);
    tcgen05_commit<1>(at.dq_full);
    if (j + 1 < tiles) {
      mbarrier_wait(at.do_full, (j + 1) & 1);
      mbarrier_wait(at.dq_empty, j & 1);
      tcgen05_fence_after();
      product_over_d(tmem + 128, at.v, at.d_o);
      tcgen05_commit<1>(at.dp_full);
    }
  }
  tcgen05_commit<1>(at.all_done);
}

__device__ void arithmetic(const Place& at, const float* rows, uint32_t tmem, int tiles, int group,
                           int key, float scale_log2) {
  const uint32_t lane = key / 32 * 32;
  for (int j = 0; j < tiles; ++j) {
    const float* lse_log2 = rows + 256 * (j & 1) + 64 * group;
    const float* delta = lse_log2 + 128;
    uint32_t s[2][32], dp[32], p[32];
    mbarrier_wait(at.q_full + 8 * (j & 1), j >> 1 & 1);  // LSE and delta came with Q
    mbarrier_wait(at.s_full, j & 1);
    tcgen05_fence_after();
    for (int c = 0; c < 2; ++c) tmem_ld(s[c], tmem_address(tmem, lane, 64 * group + 32 * c));
    tmem_wait_ld();
#pragma unroll
    for (int c = 0; c < 64; ++c)
      s[c / 32][c % 32] = __float_as_uint(
          exp2_scaled(__uint_as_float(s[c / 32][c % 32]), scale_log2, lse_log2[c]));
#pragma unroll
    for (int c = 0; c < 32; ++c)
      p[c] = pack_bf16(__uint_as_float(s[c / 16][2 * (c % 16)]),
                       __uint_as_float(s[c / 16][2 * (c % 16) + 1]));
    tcgen05_fence_before();
    named_barrier_sync(2, 256);
    tcgen05_fence_after();
    tmem_st(tmem_address(tmem, lane, 32 * group), p);
    tmem_wait_st();
    tcgen05_fence_before();
    mbarrier_arrive(at.p_ready);
    mbarrier_wait(at.dp_full, j & 1);
    tcgen05_fence_after();
    if (j > 0) mbarrier_wait(at.dq_full, (j - 1) & 1);
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      tmem_ld(dp, tmem_address(tmem, lane, 128 + 64 * group + 32 * c));
      tmem_wait_ld();
#pragma unroll
      for (int e = 0; e < 32; ++e)
        dp[e] = __float_as_uint(__uint_as_float(s[c][e]) *
                                (__uint_as_float(dp[e]) - delta[32 * c + e]));
      row_to_shared(at.ds + 16384 * group, key, 32 * c, dp);
    }
    fence_async_shared();
    tcgen05_fence_before();
    mbarrier_arrive(at.ds_ready);
  }
}

__device__ void reduce(const Place& at, uint32_t tmem, int tiles, const CUtensorMap* map_dq,
                       int first_row) {
  const int row = threadIdx.x;
  for (int j = 0; j < tiles; ++j) {
    mbarrier_wait(at.dq_full, j & 1);
    tcgen05_fence_after();
#pragma unroll 1
    for (int c = 0; c < 128; c += 32) {
      uint32_t r[32];
      tmem_ld(r, tmem_address(tmem, row / 32 * 32, 128 + c));
      tmem_wait_ld();
      if (c == 96) tcgen05_fence_before(), mbarrier_arrive(at.dq_empty);
      if (row == 0) bulk_wait_read<0>();
      named_barrier_sync(1, 128);
#pragma unroll
      for (int i = 0; i < 8; ++i)
        store_shared_128(at.staging + swizzle<128>(row * 128 + 16 * i),
                         make_uint4(r[4 * i], r[4 * i + 1], r[4 * i + 2], r[4 * i + 3]));
      fence_async_shared();
      named_barrier_sync(1, 128);
      if (row == 0) tma_reduce_add(map_dq, at.staging, {c, first_row + 128 * j}), bulk_commit();
    }
  }
  if (row == 0) bulk_wait<0>();
}

// The rows of a finished accumulator of 128 columns, scaled.
__device__ inline void drain(uint32_t accumulator, float scale, uint32_t* out) {
  for (int c = 0; c < 128; c += 32) {
    uint32_t r[32];
    tmem_ld(r, accumulator + c);
    tmem_wait_ld();
    scale_row(r, scale);
    row_to_global(out + c / 2, r);
  }
}

__global__ __launch_bounds__(512, 1) void attention_backward(
    const __grid_constant__ CUtensorMap map_q, const __grid_constant__ CUtensorMap map_k,
    const __grid_constant__ CUtensorMap map_v, const __grid_constant__ CUtensorMap map_do,
    const __grid_constant__ CUtensorMap map_dq, const float* lse_log2, const float* delta,
    uint32_t* dk, uint32_t* dv, int length, float scale, float scale_log2) {
  extern __shared__ uint8_t shared[];
  const Place at(align_up(smem_address(shared), 1024));
  const float* rows = reinterpret_cast<float*>(shared + (at.rows - smem_address(shared)));
  const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0), tiles = length / 128;
  const int head_row = blockIdx.y * length, first_key = head_row + 128 * blockIdx.x;
  if (warp == 12) tmem_alloc<1>(at.slot, 512), tmem_relinquish<1>();
  if (threadIdx.x == 0) {
    for (uint32_t bar = at.kv_full; bar < at.slot; bar += 8)
      mbarrier_init(bar, bar == at.p_ready || bar == at.ds_ready ? 256 : bar == at.dq_empty ? 128 : 1);
    fence_mbarrier_init();
  }
  tcgen05_fence_before();
  __syncthreads();
  tcgen05_fence_after();
  const uint32_t tmem = load_slot(at.slot);
  if (warp < 4) {
    setmaxnreg_inc<160>();
    reduce(at, tmem, tiles, &map_dq, head_row);
  } else if (warp < 12) {
    const int group = warp / 4 - 1, key = threadIdx.x % 128;
    arithmetic(at, rows, tmem, tiles, group, key, scale_log2);
    mbarrier_wait(at.all_done, 0);
    tcgen05_fence_after();
    const uint32_t mine = tmem_address(tmem, key / 32 * 32, 256 + 128 * group);
    drain(mine, group ? scale : 1.0f, (group ? dk : dv) + (first_key + key) * 64);
  } else {
    setmaxnreg_dec<96>();
    if (warp == 12 && elect_one()) products(at, tmem, tiles);
    if (warp == 13 && elect_one()) {
      mbarrier_arrive_expect(at.kv_full, 2 * TILE);
      load_tile(at.k, &map_k, at.kv_full, first_key), load_tile(at.v, &map_v, at.kv_full, first_key);
      Ring<2> ring;
      for (int j = 0; j < tiles; ++j, ring.advance()) {
        const int row = head_row + 128 * j;
        const uint32_t bar = at.q_full + 8 * ring.stage, figures = at.rows + 1024 * ring.stage;
        mbarrier_wait(at.q_empty + 8 * ring.stage, ring.phase ^ 1);
        mbarrier_arrive_expect(bar, TILE + 1024);
        load_tile(at.q + TILE * ring.stage, &map_q, bar, row);
        bulk_load(figures, lse_log2 + row, 512, bar), bulk_load(figures + 512, delta + row, 512, bar);
        mbarrier_wait(at.do_empty, (j & 1) ^ 1);
        mbarrier_arrive_expect(at.do_full, TILE);
        load_tile(at.d_o, &map_do, at.do_full, row);
      }
    }
    __syncwarp();
  }
  tcgen05_fence_before();
  __syncthreads();
  tcgen05_fence_after();
  if (warp == 12) tmem_dealloc<1>(tmem, 512);
}

// The second kernel of fa4-backward-two-kernels: dQ of 128 queries.
__global__ __launch_bounds__(192, 1) void attention_backward_dq(
    const __grid_constant__ CUtensorMap map_q, const __grid_constant__ CUtensorMap map_k,
    const __grid_constant__ CUtensorMap map_v, const __grid_constant__ CUtensorMap map_do,
    const float* lse_log2, const float* deltas, uint32_t* dq, int length, float scale,
    float scale_log2) {
  extern __shared__ uint8_t shared[];
  const uint32_t q = align_up(smem_address(shared), 1024), d_o = q + TILE, kv = d_o + TILE;
  const uint32_t q_full = kv + 4 * TILE, kv_full = q_full + 8, kv_empty = kv_full + 16;
  const uint32_t sdp_full = kv_empty + 16, ds_ready = sdp_full + 8, dq_step = ds_ready + 8;
  const uint32_t slot = dq_step + 8;
  const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0), tiles = length / 128;
  const int head_row = blockIdx.y * length, first = head_row + 128 * blockIdx.x;
  if (warp == 5) tmem_alloc<1>(slot, 512), tmem_relinquish<1>();
  if (threadIdx.x == 0) {
    for (uint32_t bar = q_full; bar < slot; bar += 8) mbarrier_init(bar, bar == ds_ready ? 128 : 1);
    fence_mbarrier_init();
  }
  tcgen05_fence_before();
  __syncthreads();
  tcgen05_fence_after();
  const uint32_t tmem = load_slot(slot);
  if (warp == 4 && elect_one()) {
    mbarrier_arrive_expect(q_full, 2 * TILE);
    load_tile(q, &map_q, q_full, first), load_tile(d_o, &map_do, q_full, first);
    Ring<2> ring;
    for (int j = 0; j < tiles; ++j, ring.advance()) {
      const uint32_t bar = kv_full + 8 * ring.stage, at = kv + 2 * TILE * ring.stage;
      mbarrier_wait(kv_empty + 8 * ring.stage, ring.phase ^ 1);
      mbarrier_arrive_expect(bar, 2 * TILE);
      load_tile(at, &map_k, bar, head_row + 128 * j), load_tile(at + TILE, &map_v, bar, head_row + 128 * j);
    }
  } else if (warp == 5 && elect_one()) {
    Ring<2> ring;
    mbarrier_wait(q_full, 0);
    for (int j = 0; j < tiles; ++j, ring.advance()) {
      const uint32_t k_tile = kv + 2 * TILE * ring.stage;
      mbarrier_wait(kv_full + 8 * ring.stage, ring.phase);
      if (j > 0) mbarrier_wait(dq_step, (j - 1) & 1);
      tcgen05_fence_after();
      product_over_d(tmem, q, k_tile);
      product_over_d(tmem + 128, d_o, k_tile + TILE);
      tcgen05_commit<1>(sdp_full);
      mbarrier_wait(ds_ready, j & 1);
      tcgen05_fence_after();
      for (int k = 0; k < 8; ++k)
        mma_ts<MmaKind::kF16, 1>(tmem + 256, tmem + 128 + 8 * k, step(k_tile, k), SB,
                                 j > 0 || k > 0);
      tcgen05_commit<1>(kv_empty + 8 * ring.stage);
      tcgen05_commit<1>(dq_step);
    }
  } else if (warp < 4) {
    const int row = first + threadIdx.x;
    const float lse = lse_log2[row], delta = deltas[row];
    for (int j = 0; j < tiles; ++j) {
      mbarrier_wait(sdp_full, j & 1);
      tcgen05_fence_after();
#pragma unroll
      for (int c = 0; c < 128; c += 32) {
        uint32_t s[32], dp[32], packed[16];
        tmem_ld(s, tmem_address(tmem, 32 * warp, c));
        tmem_ld(dp, tmem_address(tmem, 32 * warp, 128 + c));
        tmem_wait_ld();
#pragma unroll
        for (int i = 0; i < 32; ++i)
          dp[i] = __float_as_uint(exp2_scaled(__uint_as_float(s[i]), scale_log2, lse) *
                                  (__uint_as_float(dp[i]) - delta));
        pack_row(packed, dp);
        tmem_st(tmem_address(tmem, 32 * warp, 128 + c / 2), packed);
      }
      tmem_wait_st();
      tcgen05_fence_before();
      mbarrier_arrive(ds_ready);
    }
    mbarrier_wait(dq_step, (tiles - 1) & 1);
    tcgen05_fence_after();
    drain(tmem_address(tmem, 32 * warp, 256), scale, dq + row * 64);
  }
  __syncwarp();
  tcgen05_fence_before();
  __syncthreads();
  tcgen05_fence_after();
  if (warp == 5) tmem_dealloc<1>(tmem, 512);
}
