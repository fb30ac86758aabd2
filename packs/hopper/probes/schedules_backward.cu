// The backward schedules as whole kernels: ../schedules/fa3-backward.md and
// fa3-backward-two-pass.md.
#include "attention.cuh"

constexpr int PANEL = 16384, HALF = 8192, QUERY_TILES = LENGTH / 64, KEY_TILES = LENGTH / 64;

struct Places {
  uint32_t k, v, q[2], go[2], ds, staging, lse[2], delta[2];
  uint32_t kv_full, q_full[2], q_empty[2], go_full[2], go_empty[2];
};
constexpr int SHARED_BYTES = 1024 + 8 * PANEL + 3 * PANEL + 4 * 256 + 9 * 8;

__device__ inline Places places(uint32_t base) {
  Places at{base, base + 2 * PANEL};
  at.ds = base + 8 * PANEL, at.staging = base + 9 * PANEL;
  const uint32_t rows = base + 11 * PANEL, bars = rows + 1024;
  at.kv_full = bars;
  for (uint32_t s = 0; s < 2; ++s) {
    at.q[s] = base + (4 + s) * PANEL, at.go[s] = base + (6 + s) * PANEL;
    at.lse[s] = rows + 256 * s, at.delta[s] = rows + 512 + 256 * s;
    at.q_full[s] = bars + 8 * (1 + s), at.q_empty[s] = bars + 8 * (3 + s);
    at.go_full[s] = bars + 8 * (5 + s), at.go_empty[s] = bars + 8 * (7 + s);
  }
  return at;
}

__device__ inline void prepare(const Places& at) {
  if (threadIdx.x == 0) {
    mbarrier_init(at.kv_full, 1);
    for (int s = 0; s < 2; ++s) {
      mbarrier_init(at.q_full[s], 1), mbarrier_init(at.q_empty[s], 2);
      mbarrier_init(at.go_full[s], 1), mbarrier_init(at.go_empty[s], 2);
    }
    fence_mbarrier_init();
  }
  __syncthreads();
}

struct Maps {
  CUtensorMap q, k, v, go, gq, gk, gv;
};

// Two operands of 128 rows that stay, then a ring of tiles of 64 rows of two others.
__device__ inline void produce(const Places& at, const CUtensorMap* stay_1,
                               const CUtensorMap* stay_2, const CUtensorMap* flow_1,
                               const CUtensorMap* flow_2, int stay_row, int flow_row,
                               const float* lse, const float* delta) {
  mbarrier_arrive_expect(at.kv_full, 4 * PANEL);
  for (int panel = 0; panel < 2; ++panel)
    for (int half = 0; half < 2; ++half) {
      const uint32_t offset = panel * PANEL + half * HALF;
      tma_load(at.k + offset, stay_1, at.kv_full, {64 * panel, stay_row + 64 * half});
      tma_load(at.v + offset, stay_2, at.kv_full, {64 * panel, stay_row + 64 * half});
    }
  const uint32_t extra = lse ? 256 : 0;
  for (int i = 0; i < QUERY_TILES; ++i) {
    const int s = i % 2, parity = (i / 2 % 2) ^ 1, row = flow_row + 64 * i;
    mbarrier_wait(at.q_empty[s], parity);
    mbarrier_arrive_expect(at.q_full[s], PANEL + extra);
    tma_load(at.q[s], flow_1, at.q_full[s], {0, row});
    tma_load(at.q[s] + HALF, flow_1, at.q_full[s], {64, row});
    if (lse) bulk_load(at.lse[s], lse + row, 256, at.q_full[s]);
    mbarrier_wait(at.go_empty[s], parity);
    mbarrier_arrive_expect(at.go_full[s], PANEL + extra);
    tma_load(at.go[s], flow_2, at.go_full[s], {0, row});
    tma_load(at.go[s] + HALF, flow_2, at.go_full[s], {64, row});
    if (lse) bulk_load(at.delta[s], delta + row, 256, at.go_full[s]);
  }
}

// d (64 x 64) = 64 rows of a resident operand times 64 rows of a tile, over the head dimension.
__device__ inline void inner(float (&d)[32], uint32_t resident, uint32_t tile) {
#pragma unroll
  for (int n = 0; n < 8; ++n)
    wgmma_ss<64>(d, k_major(resident + n / 4 * PANEL + n % 4 * 32),
                 k_major(tile + n / 4 * HALF + n % 4 * 32), n);
}

// d (64 x 128) += a (64 x 64, registers) times a tile as it lies in memory.
__device__ inline void outer(float (&d)[64], const uint32_t (&a)[16], uint32_t tile, bool add) {
#pragma unroll
  for (int n = 0; n < 4; ++n)
    wgmma_rs<128, Input::BF16, 1>(d, a + 4 * n, mn_major(tile + n * 2048, HALF), add || n > 0);
}

__device__ inline float shared_float(uint32_t address) {
  float value;
  asm volatile("ld.shared.f32 %0, [%1];" : "=f"(value) : "r"(address) : "memory");
  return value;
}

// Row-major fp32 [64, 64] for the reduction; no swizzle.
__device__ inline void stage(const float (&d)[32], uint32_t to, int t) {
#pragma unroll
  for (int e = 0; e < 32; e += 2)
    asm volatile(
        "st.shared.v2.f32 [%0], {%1, %2};" ::"r"(to + acc_row(t, e) * 256 + acc_column(t, e) * 4),
        "f"(d[e]), "f"(d[e + 1])
        : "memory");
}

__device__ inline void leave(float (&d)[64], float scale, uint32_t to, int t) {
#pragma unroll
  for (int e = 0; e < 64; ++e) d[e] *= scale;
  acc_to_shared(to, d, 0, t);
  acc_to_shared(to + PANEL, d, 1, t);
}

template <bool WITH_DQ>
__device__ void consume_keys(const Places& at, const Maps& maps, int key_row, int query_row, int w,
                             int t) {
  float dk[64], dv[64];
  mbarrier_wait(at.kv_full, 0);
#pragma unroll 1
  for (int i = 0; i < QUERY_TILES; ++i) {
    const int s = i % 2, parity = i / 2 % 2;
    const uint32_t q = at.q[s], go = at.go[s];
    float st[32], dpt[32];
    uint32_t pt[16], dst[16];
    mbarrier_wait(at.q_full[s], parity);
    wgmma_fence();
    inner(st, at.k + w * HALF, q);
    wgmma_commit();
    mbarrier_wait(at.go_full[s], parity);
    wgmma_fence();
    inner(dpt, at.v + w * HALF, go);
    wgmma_commit();
    wgmma_wait<1>();
    wgmma_settle(st);
#pragma unroll
    for (int e = 0; e < 32; ++e)
      st[e] =
          exp2_scaled(st[e], SCALE * LOG2E, shared_float(at.lse[s] + 4 * acc_column(t, e)) * LOG2E);
    acc_to_a(pt, st);
    wgmma_fence();
    outer(dv, pt, go, i > 0);
    wgmma_commit();
    wgmma_wait<1>();
    wgmma_settle(dpt);
#pragma unroll
    for (int e = 0; e < 32; ++e)
      dpt[e] = st[e] * (dpt[e] - shared_float(at.delta[s] + 4 * acc_column(t, e)));
    acc_to_a(dst, dpt);
    if (WITH_DQ) {
      acc_to_shared(at.ds + w * HALF, dpt, 0, t);
      fence_async_shared();
      named_barrier_sync(1, 256);
    }
    wgmma_fence();
    outer(dk, dst, q, i > 0);
    wgmma_commit();
    if constexpr (WITH_DQ) {
      float dq[32];
#pragma unroll
      for (int n = 0; n < 8; ++n)
        wgmma_ss<64, Input::BF16, 1, 1>(dq, mn_major(at.ds + n * 2048, HALF),
                                        mn_major(at.k + w * PANEL + n * 2048, PANEL), n);
      wgmma_commit();
      wgmma_wait<0>();
      wgmma_settle(dq);
      if (t == 0) bulk_wait_read<0>();
      named_barrier_sync(2 + w, 128);
      stage(dq, at.staging + w * PANEL, t);
      fence_async_shared();
      named_barrier_sync(2 + w, 128);
      if (t == 0) {
        tma_reduce_add(&maps.gq, at.staging + w * PANEL, {64 * w, query_row + 64 * i});
        bulk_commit();
      }
      named_barrier_sync(1, 256);
    } else {
      wgmma_wait<0>();
    }
    wgmma_settle(dv);
    wgmma_settle(dk);
    if (t == 0) {
      mbarrier_arrive(at.q_empty[s]);
      mbarrier_arrive(at.go_empty[s]);
    }
  }
  named_barrier_sync(1, 256);  // both consumers have done with K and V
  leave(dv, 1.f, at.v + w * HALF, t);
  leave(dk, SCALE, at.k + w * HALF, t);
  fence_async_shared();
  named_barrier_sync(2 + w, 128);
  if (t == 0) {
    for (int panel = 0; panel < 2; ++panel) {
      tma_store(&maps.gv, at.v + w * HALF + panel * PANEL, {64 * panel, key_row + 64 * w});
      tma_store(&maps.gk, at.k + w * HALF + panel * PANEL, {64 * panel, key_row + 64 * w});
    }
    bulk_commit();
    bulk_wait<0>();
  }
}

template <bool WITH_DQ>
__global__ __launch_bounds__(384, 1) void schedule_backward_keys(const __grid_constant__ Maps maps,
                                                                 const float* lse,
                                                                 const float* delta) {
  extern __shared__ uint8_t raw[];
  const Places at = places(align_up(smem_address(raw), 1024));
  prepare(at);
  const int key_row = blockIdx.x * 128, query_row = key_row / LENGTH * LENGTH;
  const int group = warpgroup_index();
  if (group == 0) {
    setmaxnreg_dec<24>();
    if (threadIdx.x == 0)
      produce(at, &maps.k, &maps.v, &maps.q, &maps.go, key_row, query_row, lse, delta);
  } else {
    setmaxnreg_inc<240>();
    consume_keys<WITH_DQ>(at, maps, key_row, query_row, group - 1, threadIdx.x % 128);
  }
}

// Second pass: queries stay (in the places of K and V), keys and values flow (in those of Q and
// dO).
__device__ inline void consume_queries(const Places& at, const Maps& maps, const float* lse,
                                       const float* delta, int query_row, int c, int t) {
  float dq[64], row_lse[2], row_delta[2];
  for (int r = 0; r < 2; ++r) {
    const int row = query_row + 64 * c + acc_row(t, 2 * r);
    row_lse[r] = lse[row] * LOG2E, row_delta[r] = delta[row];
  }
  mbarrier_wait(at.kv_full, 0);
#pragma unroll 1
  for (int j = 0; j < KEY_TILES; ++j) {
    const int stage = j % 2, parity = j / 2 % 2;
    float s[32], dp[32];
    uint32_t ds[16];
    mbarrier_wait(at.q_full[stage], parity);
    wgmma_fence();
    inner(s, at.k + c * HALF, at.q[stage]);
    wgmma_commit();
    mbarrier_wait(at.go_full[stage], parity);
    wgmma_fence();
    inner(dp, at.v + c * HALF, at.go[stage]);
    wgmma_commit();
    wgmma_wait<1>();
    wgmma_settle(s);
#pragma unroll
    for (int e = 0; e < 32; ++e) s[e] = exp2_scaled(s[e], SCALE * LOG2E, row_lse[e >> 1 & 1]);
    wgmma_wait<0>();
    wgmma_settle(dp);
    if (t == 0) mbarrier_arrive(at.go_empty[stage]);
#pragma unroll
    for (int e = 0; e < 32; ++e) dp[e] = s[e] * (dp[e] - row_delta[e >> 1 & 1]);
    acc_to_a(ds, dp);
    wgmma_fence();
    outer(dq, ds, at.q[stage], j > 0);
    wgmma_commit();
    wgmma_wait<0>();
    wgmma_settle(dq);
    if (t == 0) mbarrier_arrive(at.q_empty[stage]);
  }
  named_barrier_sync(2 + c, 128);
  leave(dq, SCALE, at.k + c * HALF, t);
  fence_async_shared();
  named_barrier_sync(2 + c, 128);
  if (t == 0) {
    tma_store(&maps.gq, at.k + c * HALF, {0, query_row + 64 * c});
    tma_store(&maps.gq, at.k + c * HALF + PANEL, {64, query_row + 64 * c});
    bulk_commit();
    bulk_wait<0>();
  }
}

__global__ __launch_bounds__(384,
                             1) void schedule_backward_queries(const __grid_constant__ Maps maps,
                                                               const float* lse,
                                                               const float* delta) {
  extern __shared__ uint8_t raw[];
  const Places at = places(align_up(smem_address(raw), 1024));
  prepare(at);
  const int query_row = blockIdx.x * 128, key_row = query_row / LENGTH * LENGTH;
  const int group = warpgroup_index();
  if (group == 0) {
    setmaxnreg_dec<24>();
    if (threadIdx.x == 0)
      produce(at, &maps.q, &maps.go, &maps.k, &maps.v, query_row, key_row, nullptr, nullptr);
  } else {
    setmaxnreg_inc<240>();
    consume_queries(at, maps, lse, delta, query_row, group - 1, threadIdx.x % 128);
  }
}

struct Gradients {
  Array<__nv_bfloat16> q{size_t(ROWS) * DIM}, k{size_t(ROWS) * DIM}, v{size_t(ROWS) * DIM};
  Array<float> workspace{size_t(ROWS) * DIM}, lse{ROWS}, delta{ROWS};
  Attention host;
  Maps maps;
  bool described = true;

  Gradients() {
    host.differentiate();
    lse.host = host.lse, delta.host = host.delta;
    lse.push(), delta.push();
    describe(&maps.q, host.q), describe(&maps.k, host.k), describe(&maps.v, host.v);
    describe(&maps.go, host.go), describe(&maps.gq, q), describe(&maps.gk, k);
    describe(&maps.gv, v);
  }
  void describe(CUtensorMap* map, const Array<__nv_bfloat16>& tensor) {
    described &= make_bf16_map(map, tensor.data, ROWS, DIM, 2 * DIM, 64, 64);
  }
};

std::string one_pass() {
  Gradients g;
  const uint64_t pitch[1] = {4 * DIM};
  g.described &=
      make_tensor_map<2>(&g.maps.gq, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, g.workspace.data,
                         {DIM, ROWS}, pitch, {64, 64}, CU_TENSOR_MAP_SWIZZLE_NONE);
  if (!g.described || !allow_shared_memory(schedule_backward_keys<true>, SHARED_BYTES))
    return "refused";
  schedule_backward_keys<true><<<ROWS / 128, 384, SHARED_BYTES>>>(g.maps, g.lse.data, g.delta.data);
  g.workspace.pull(), g.k.pull(), g.v.pull();
  for (float& x : g.workspace.host) x *= SCALE;
  return compare(g.workspace.host, g.host.gq, 1e-2) + compare(floats(g.k.host), g.host.gk, 1e-2) +
         compare(floats(g.v.host), g.host.gv, 1e-2);
}

std::string two_passes() {
  Gradients g;
  if (!g.described || !allow_shared_memory(schedule_backward_keys<false>, SHARED_BYTES) ||
      !allow_shared_memory(schedule_backward_queries, SHARED_BYTES))
    return "refused";
  schedule_backward_keys<false>
      <<<ROWS / 128, 384, SHARED_BYTES>>>(g.maps, g.lse.data, g.delta.data);
  schedule_backward_queries<<<ROWS / 128, 384, SHARED_BYTES>>>(g.maps, g.lse.data, g.delta.data);
  g.q.pull(), g.k.pull(), g.v.pull();
  return compare(floats(g.q.host), g.host.gq, 1e-2) + compare(floats(g.k.host), g.host.gk, 1e-2) +
         compare(floats(g.v.host), g.host.gv, 1e-2);
}

int main() {
  probe("schedule_backward", {"tma_reduce_add", "acc_to_shared", "mn_major"}, one_pass);
  probe("schedule_backward_two_pass", {"wgmma_rs", "acc_to_a", "bulk_load"}, two_passes);
  return failures != 0;
}
