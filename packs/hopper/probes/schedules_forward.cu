// The forward schedules as whole kernels: ../schedules/fa3-forward.md and fa3-forward-pingpong.md.
#include "attention.cuh"

constexpr int TILES = LENGTH / 128, PANEL = 16384, TILE = 2 * PANEL;
constexpr int SHARED_BYTES = 1024 + 5 * TILE + 9 * 8;

struct Places {
  uint32_t q, k[2], v[2], q_full, k_full[2], k_empty[2], v_full[2], v_empty[2];
};

__device__ inline Places places(uint32_t base) {
  Places at{base};
  const uint32_t bars = base + 5 * TILE;
  at.q_full = bars;
  for (uint32_t s = 0; s < 2; ++s) {
    at.k[s] = base + (1 + s) * TILE, at.v[s] = base + (3 + s) * TILE;
    at.k_full[s] = bars + 8 * (1 + s), at.k_empty[s] = bars + 8 * (3 + s);
    at.v_full[s] = bars + 8 * (5 + s), at.v_empty[s] = bars + 8 * (7 + s);
  }
  return at;
}

__device__ inline void load(uint32_t to, const CUtensorMap* map, int row, uint32_t bar) {
  mbarrier_arrive_expect(bar, TILE);
  tma_load(to, map, bar, {0, row});
  tma_load(to + PANEL, map, bar, {64, row});
}

__device__ inline void produce(const Places& at, const CUtensorMap* map_q, const CUtensorMap* map_k,
                               const CUtensorMap* map_v, int first_q, int first_k) {
  load(at.q, map_q, first_q, at.q_full);
  for (int j = 0; j < TILES; ++j) {
    const int s = j % 2, parity = (j / 2 % 2) ^ 1;
    mbarrier_wait(at.k_empty[s], parity);
    load(at.k[s], map_k, first_k + 128 * j, at.k_full[s]);
    mbarrier_wait(at.v_empty[s], parity);
    load(at.v[s], map_v, first_k + 128 * j, at.v_full[s]);
  }
}

__device__ inline void scores(float (&s)[64], uint32_t q, uint32_t k) {
#pragma unroll
  for (int i = 0; i < 8; ++i)
    wgmma_ss<128>(s, k_major(q + i / 4 * PANEL + i % 4 * 32),
                  k_major(k + i / 4 * PANEL + i % 4 * 32), i);
}

__device__ inline void add_values(float (&o)[64], const uint32_t (&p)[32], uint32_t v, bool add) {
#pragma unroll
  for (int i = 0; i < 8; ++i)
    wgmma_rs<128, Input::BF16, 1>(o, p + 4 * i, mn_major(v + i * 2048, PANEL), add || i > 0);
}

struct Softmax {
  float m[2] = {-INFINITY, -INFINITY}, l[2] = {0.f, 0.f}, shrink[2];

  __device__ void update(float (&s)[64]) {
    constexpr float C = SCALE * LOG2E;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float top = m[r], sum = 0.f;
#pragma unroll
      for (int i = 0; i < 64; ++i)
        if ((i >> 1 & 1) == r) top = fmaxf(top, s[i]);
      top = quad_max(top);
      shrink[r] = exp2_approx((m[r] - top) * C);
      m[r] = top;
#pragma unroll
      for (int i = 0; i < 64; ++i)
        if ((i >> 1 & 1) == r) {
          s[i] = exp2_scaled(s[i], C, top * C);
          sum += s[i];
        }
      l[r] = l[r] * shrink[r] + sum;
    }
  }
};

__device__ inline void finish(float (&o)[64], Softmax& softmax, uint32_t q,
                              const CUtensorMap* map_o, float* lse, int row, int consumer, int t) {
  float inverse[2];
  for (int r = 0; r < 2; ++r) {
    const float sum = quad_sum(softmax.l[r]);
    inverse[r] = 1.f / sum;
    if (t % 4 == 0) lse[row + acc_row(t, 2 * r)] = softmax.m[r] * SCALE + logf(sum);
  }
#pragma unroll
  for (int i = 0; i < 64; ++i) o[i] *= inverse[i >> 1 & 1];
  named_barrier_sync(1 + consumer, 128);  // the warpgroup has done with its rows of Q
  acc_to_shared(q, o, 0, t);
  acc_to_shared(q + PANEL, o, 1, t);
  fence_async_shared();
  named_barrier_sync(1 + consumer, 128);
  if (t == 0) {
    tma_store(map_o, q, {0, row});
    tma_store(map_o, q + PANEL, {64, row});
    bulk_commit();
    bulk_wait<0>();
  }
}

// PINGPONG: the two consumers take turns in issuing products.
template <bool PINGPONG>
__device__ void consume(const Places& at, const CUtensorMap* map_o, float* lse, int first_q, int c,
                        int t) {
  const uint32_t q = at.q + c * 8192;
  float s[64], o[64];
  uint32_t p[32];
  Softmax softmax;
  const auto await_turn = [&] {
    if (PINGPONG) named_barrier_sync(3 + c, 256);
  };
  const auto hand_on = [&](bool more) {
    if (PINGPONG && more) named_barrier_arrive(3 + (1 - c), 256);
  };
  mbarrier_wait(at.q_full, 0);
  mbarrier_wait(at.k_full[0], 0);
  if (c == 1) hand_on(true);
  await_turn();
  wgmma_fence();
  scores(s, q, at.k[0]);
  wgmma_commit();
  hand_on(c == 0 || TILES > 1);
  wgmma_wait<0>();
  wgmma_settle(s);
  if (t == 0) mbarrier_arrive(at.k_empty[0]);
  softmax.update(s);
  acc_to_a(p, s);
#pragma unroll 1
  for (int j = 1; j < TILES; ++j) {
    const int now = j % 2, before = (j - 1) % 2;
    mbarrier_wait(at.k_full[now], j / 2 % 2);
    await_turn();
    wgmma_fence();
    scores(s, q, at.k[now]);
    wgmma_commit();
    mbarrier_wait(at.v_full[before], (j - 1) / 2 % 2);
    add_values(o, p, at.v[before], j > 1);
    wgmma_commit();
    hand_on(c == 0 || j + 1 < TILES);
    wgmma_wait<1>();
    wgmma_settle(s);
    if (t == 0) mbarrier_arrive(at.k_empty[now]);
    softmax.update(s);
    wgmma_wait<0>();
    wgmma_settle(o);
    if (t == 0) mbarrier_arrive(at.v_empty[before]);
#pragma unroll
    for (int i = 0; i < 64; ++i) o[i] *= softmax.shrink[i >> 1 & 1];
    acc_to_a(p, s);
  }
  constexpr int LAST = TILES - 1;
  mbarrier_wait(at.v_full[LAST % 2], LAST / 2 % 2);
  wgmma_fence();
  add_values(o, p, at.v[LAST % 2], TILES > 1);
  wgmma_commit();
  wgmma_wait<0>();
  wgmma_settle(o);
  finish(o, softmax, q, map_o, lse, first_q + 64 * c, c, t);
}

template <bool PINGPONG>
__global__ __launch_bounds__(384,
                             1) void schedule_forward(const __grid_constant__ CUtensorMap map_q,
                                                      const __grid_constant__ CUtensorMap map_k,
                                                      const __grid_constant__ CUtensorMap map_v,
                                                      const __grid_constant__ CUtensorMap map_o,
                                                      float* lse) {
  extern __shared__ uint8_t raw[];
  const Places at = places(align_up(smem_address(raw), 1024));
  if (threadIdx.x == 0) {
    mbarrier_init(at.q_full, 1);
    for (int s = 0; s < 2; ++s) {
      mbarrier_init(at.k_full[s], 1), mbarrier_init(at.k_empty[s], 2);
      mbarrier_init(at.v_full[s], 1), mbarrier_init(at.v_empty[s], 2);
    }
    fence_mbarrier_init();
  }
  __syncthreads();
  const int head = blockIdx.x / TILES, first_q = blockIdx.x * 128, group = warpgroup_index();
  if (group == 0) {
    setmaxnreg_dec<24>();
    if (threadIdx.x == 0) produce(at, &map_q, &map_k, &map_v, first_q, head * LENGTH);
  } else {
    setmaxnreg_inc<240>();
    consume<PINGPONG>(at, &map_o, lse, first_q, group - 1, threadIdx.x % 128);
  }
}

template <bool PINGPONG>
std::string forward() {
  Attention host;
  Array<__nv_bfloat16> o(ROWS * DIM);
  Array<float> lse(ROWS);
  CUtensorMap q_map, k_map, v_map, o_map;
  if (!make_bf16_map(&q_map, host.q.data, ROWS, DIM, 2 * DIM, 128, 64) ||
      !make_bf16_map(&k_map, host.k.data, ROWS, DIM, 2 * DIM, 128, 64) ||
      !make_bf16_map(&v_map, host.v.data, ROWS, DIM, 2 * DIM, 128, 64) ||
      !make_bf16_map(&o_map, o.data, ROWS, DIM, 2 * DIM, 64, 64) ||
      !allow_shared_memory(schedule_forward<PINGPONG>, SHARED_BYTES))
    return "refused";
  schedule_forward<PINGPONG>
      <<<ROWS / 128, 384, SHARED_BYTES>>>(q_map, k_map, v_map, o_map, lse.data);
  o.pull(), lse.pull();
  return compare(floats(o.host), host.o, 1e-2) + compare(lse.host, host.lse, 1e-3);
}

int main() {
  probe("schedule_forward", {"acc_to_a", "wgmma_rs", "exp2_scaled", "quad_max"}, forward<false>);
  probe("schedule_forward_pingpong", {"named_barrier_arrive", "quad_sum"}, forward<true>);
  return failures != 0;
}
