// The schedules fa4-forward and fa4-forward-lazy (LAZY) as one kernel: compiled for sm_100a and looked
// at, never run by us. O and LSE of attention without a mask, bf16, d = 128, S a multiple of 256.
#include "../../hopper/templates/sync.cuh"

#include "../../hopper/templates/fastmath.cuh"
#include "../../hopper/templates/mbarrier.cuh"
#include "../../hopper/templates/tma.cuh"

#include "../templates/tmem.cuh"

#include "../templates/tcgen05.cuh"

#include "../templates/epilogue.cuh"
#include "../templates/softmax.cuh"

using namespace ptx;

constexpr int KV = 5;
constexpr uint32_t TILE = 128 * 128 * 2;  // 128 rows of d = 128: two boxes {64, 128}
constexpr int SHARED = 1024 + (2 + KV) * TILE + 2 * 128 * 4 + 8 * (14 + 2 * KV) + 16;
static_assert(SHARED <= 232448, "fits a block");

__device__ inline uint32_t load_slot(uint32_t slot) {
  uint32_t value;
  asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(slot));
  return value;
}

struct Place {
  uint32_t q, kv, scales, q_full, s_full, p_full, scale_full, scale_empty, o_ready, o_done, kv_full,
      kv_empty, slot;
  __device__ explicit Place(uint32_t base) {
    q = base, kv = q + 2 * TILE, scales = kv + KV * TILE, q_full = scales + 1024;
    s_full = q_full + 16, p_full = s_full + 16, scale_full = p_full + 16;
    scale_empty = scale_full + 16, o_ready = scale_empty + 16, o_done = o_ready + 16;
    kv_full = o_done + 16, kv_empty = kv_full + 8 * KV, slot = kv_empty + 8 * KV;
  }
};

__device__ inline void load_tile(uint32_t dst, const CUtensorMap* map, uint32_t bar, int row) {
  mbarrier_arrive_expect(bar, TILE);
  for (int h = 0; h < 2; ++h) tma_load(dst + 16384 * h, map, bar, {64 * h, row});
}

__device__ void products(const Place& at, uint32_t tmem, int blocks) {
  constexpr uint32_t QK = mma_idesc(128, 128, Elem::kBF16, Elem::kBF16);
  constexpr uint32_t PV =
      mma_idesc(128, 128, Elem::kBF16, Elem::kBF16, Acc::kF32, false, true);
  auto scores = [&](int i, uint32_t k_tile) {
    for (int h = 0; h < 2; ++h)
      mma_ss_row<MmaKind::kF16, 1>(tmem + 128 * i, tile_desc_k_major(at.q + TILE * i + 16384 * h),
                                   tile_desc_k_major(k_tile + 16384 * h), QK, h > 0);
    tcgen05_commit<1>(at.s_full + 8 * i);
  };
  Ring<KV> ring;
  mbarrier_wait(at.kv_full, 0);
  for (int i = 0; i < 2; ++i) {
    mbarrier_wait(at.q_full + 8 * i, 0);
    tcgen05_fence_after();
    scores(i, at.kv);
  }
  tcgen05_commit<1>(at.kv_empty);
  ring.advance();
  for (int j = 0; j < blocks; ++j) {
    const Ring<KV> v = ring;
    const uint32_t v_tile = at.kv + v.stage * TILE;
    mbarrier_wait(at.kv_full + 8 * v.stage, v.phase);
    ring.advance();
    const Ring<KV> next = ring;
    if (j + 1 < blocks) mbarrier_wait(at.kv_full + 8 * next.stage, next.phase), ring.advance();
    for (int i = 0; i < 2; ++i) {
      mbarrier_wait(at.p_full + 8 * i, j & 1);
      if (j > 0) mbarrier_wait(at.o_ready + 8 * i, (j - 1) & 1);
      tcgen05_fence_after();
      for (int k = 0; k < 8; ++k)
        mma_ts<MmaKind::kF16, 1>(tmem + 256 + 128 * i, tmem + 128 * i + 8 * k,
                                 tile_desc_advance(tile_desc_mn_major(v_tile, 16384), 2048 * k), PV,
                                 j > 0 || k > 0);
      tcgen05_commit<1>(at.o_done + 8 * i);
      if (j + 1 < blocks) scores(i, at.kv + next.stage * TILE);
    }
    tcgen05_commit<1>(at.kv_empty + 8 * v.stage);
    if (j + 1 < blocks) tcgen05_commit<1>(at.kv_empty + 8 * next.stage);
  }
}

template <bool LAZY>
__device__ void softmax(const Place& at, float* scales, uint32_t tmem, int blocks, int i, int row,
                        float scale_log2, float* lse) {
  const uint32_t mine = tmem_address(tmem, row / 32 * 32, 128 * i);
  float m = -INFINITY, l = 0;
  for (int j = 0; j < blocks; ++j) {
    mbarrier_wait(at.s_full + 8 * i, j & 1);
    tcgen05_fence_after();
    uint32_t r[4][32];
    for (int c = 0; c < 4; ++c) tmem_ld(r[c], mine + 32 * c);
    tmem_wait_ld();
    float seen = m;
    for (int c = 0; c < 4; ++c) seen = row_max(r[c], seen);
    float factor = 1.0f;
    if (!LAZY || (seen - m) * scale_log2 > 8.0f || m == -INFINITY) {
      const float safe = seen == -INFINITY ? 0.0f : seen;
      factor = exp2_approx((m - safe) * scale_log2);
      m = seen;
    }
    const float offset = (m == -INFINITY ? 0.0f : m) * scale_log2;
    mbarrier_wait(at.scale_empty + 8 * i, (j & 1) ^ 1);
    scales[row] = factor;
    mbarrier_arrive(at.scale_full + 8 * i);
    float2 sum = make_float2(0, 0);
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      uint32_t p[16];
#pragma unroll
      for (int e = 0; e < 32; e += 2) {
        float2 x = fma2(make_float2(__uint_as_float(r[c][e]), __uint_as_float(r[c][e + 1])),
                        make_float2(scale_log2, scale_log2), make_float2(-offset, -offset));
        x = LAZY && e % 16 == 14 ? make_float2(exp2_cubic(x.x), exp2_cubic(x.y))
                                 : make_float2(exp2_approx(x.x), exp2_approx(x.y));
        sum = add2(sum, x);
        p[e / 2] = pack_bf16(x.x, x.y);
      }
      tmem_st(mine + 16 * c, p);
    }
    tmem_wait_st();
    tcgen05_fence_before();
    mbarrier_arrive(at.p_full + 8 * i);
    l = l * factor + sum.x + sum.y;
  }
  mbarrier_wait(at.scale_empty + 8 * i, (blocks & 1) ^ 1);
  scales[row] = l;
  mbarrier_arrive(at.scale_full + 8 * i);
  *lse = 0.6931472f * (m * scale_log2 + log2_approx(l));
}

// Both tiles, rounds 0 .. blocks; round `blocks` carries l.
__device__ void correction(const Place& at, const float* scales, uint32_t tmem, int blocks, int row,
                           const CUtensorMap* map_o, int first_row) {
  const uint32_t mine = tmem_address(tmem, row / 32 * 32, 256);
  for (int j = 0; j <= blocks; ++j)
    for (int i = 0; i < 2; ++i) {
      mbarrier_wait(at.scale_full + 8 * i, j & 1);
      const float factor = scales[128 * i + row];
      mbarrier_arrive(at.scale_empty + 8 * i);
      if (j == 0) continue;
      mbarrier_wait(at.o_done + 8 * i, (j - 1) & 1);
      tcgen05_fence_after();
      const bool last = j == blocks;
      const float times = last ? rcp_approx(factor) : factor;
      if (last || __any_sync(0xffffffff, factor != 1.0f))
        for (int c = 0; c < 128; c += 32) {
          uint32_t r[32];
          tmem_ld(r, mine + 128 * i + c);
          tmem_wait_ld();
          scale_row(r, times);
          if (last)
            row_to_shared(at.q + TILE * i + 16384 * (c / 64), row, c % 64, r);
          else
            tmem_st(mine + 128 * i + c, r);
        }
      if (!last) {
        tmem_wait_st();
        tcgen05_fence_before();
        mbarrier_arrive(at.o_ready + 8 * i);
        continue;
      }
      fence_async_shared();
      named_barrier_sync(1, 128);
      if (row == 0) {
        for (int h = 0; h < 2; ++h)
          tma_store(map_o, at.q + TILE * i + 16384 * h, {64 * h, first_row + 128 * i});
        bulk_commit();
      }
    }
  if (row == 0) bulk_wait<0>();
}

template <bool LAZY>
__global__ __launch_bounds__(512, 1) void attention_forward(
    const __grid_constant__ CUtensorMap map_q, const __grid_constant__ CUtensorMap map_k,
    const __grid_constant__ CUtensorMap map_v, const __grid_constant__ CUtensorMap map_o, float* lse,
    int length, float scale_log2) {
  extern __shared__ uint8_t shared[];
  const uint32_t base = align_up(smem_address(shared), 1024);
  const Place at(base);
  float* scales = reinterpret_cast<float*>(shared + (at.scales - smem_address(shared)));
  const int warp = __shfl_sync(0xffffffff, threadIdx.x / 32, 0), row = threadIdx.x % 128;
  const int head_row = blockIdx.y * length, first_row = head_row + 256 * blockIdx.x;
  const int blocks = length / 128;
  if (warp == 12) tmem_alloc<1>(at.slot, 512), tmem_relinquish<1>();
  if (threadIdx.x == 0) {
    for (int i = 0; i < 2; ++i) {
      mbarrier_init(at.q_full + 8 * i, 1), mbarrier_init(at.s_full + 8 * i, 1);
      mbarrier_init(at.p_full + 8 * i, 128), mbarrier_init(at.scale_full + 8 * i, 128);
      mbarrier_init(at.scale_empty + 8 * i, 128), mbarrier_init(at.o_ready + 8 * i, 128);
      mbarrier_init(at.o_done + 8 * i, 1);
    }
    for (int s = 0; s < KV; ++s)
      mbarrier_init(at.kv_full + 8 * s, 1), mbarrier_init(at.kv_empty + 8 * s, 1);
    fence_mbarrier_init();
  }
  tcgen05_fence_before();
  __syncthreads();
  tcgen05_fence_after();
  const uint32_t tmem = load_slot(at.slot);
  if (warp < 8) {
    setmaxnreg_inc<192>();
    const int i = warp / 4;
    softmax<LAZY>(at, scales + 128 * i, tmem, blocks, i, row, scale_log2,
                  lse + first_row + 128 * i + row);
  } else if (warp < 12) {
    setmaxnreg_dec<80>();
    correction(at, scales, tmem, blocks, row, &map_o, first_row);
  } else {
    setmaxnreg_dec<48>();
    if (warp == 12 && elect_one()) products(at, tmem, blocks);
    if (warp == 13 && elect_one()) {
      for (int i = 0; i < 2; ++i) load_tile(at.q + TILE * i, &map_q, at.q_full + 8 * i, first_row + 128 * i);
      Ring<KV> ring;
      for (int j = 0; j < blocks; ++j)
        for (int what = 0; what < 2; ++what, ring.advance()) {
          mbarrier_wait(at.kv_empty + 8 * ring.stage, ring.phase ^ 1);
          load_tile(at.kv + ring.stage * TILE, what ? &map_v : &map_k, at.kv_full + 8 * ring.stage,
                    head_row + 128 * j);
        }
    }
    __syncwarp();
  }
  tcgen05_fence_before();
  __syncthreads();
  tcgen05_fence_after();
  if (warp == 12) tmem_dealloc<1>(tmem, 512);
}

const void* forward_kernels[] = {reinterpret_cast<const void*>(attention_forward<false>),
                                 reinterpret_cast<const void*>(attention_forward<true>)};
