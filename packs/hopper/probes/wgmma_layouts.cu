// Probes of the descriptors: every swizzle, major-ness and type, and tiles that the TMA has
// written.
#include "wgmma.cuh"
#include "../templates/mbarrier.cuh"
#include "../templates/tma.cuh"

template <int N, int SWIZZLE>
void check() {
  check_shared<N, Input::BF16, SWIZZLE, K_MAJOR, K_MAJOR>();
  check_shared<N, Input::BF16, SWIZZLE, K_MAJOR, MN_MAJOR>();
  check_shared<N, Input::BF16, SWIZZLE, MN_MAJOR, K_MAJOR>();
}

// A [64, 64] and B^T [64, 128] row-major in global memory, by TMA in boxes as wide as the swizzle.
template <int SWIZZLE>
__global__ __launch_bounds__(128) void wgmma_after_tma(const __grid_constant__ CUtensorMap map_a,
                                                       const __grid_constant__ CUtensorMap map_b,
                                                       float* out) {
  constexpr int WIDTH = SWIZZLE / 2, PANEL = 64 * SWIZZLE;
  __shared__ alignas(8) uint64_t object;
  const uint32_t a = smem_address(aligned_shared()), b = a + 8192, bar = smem_address(&object);
  if (threadIdx.x == 0) {
    mbarrier_init(bar, 1);
    fence_mbarrier_init();
    mbarrier_arrive_expect(bar, 8192 + 16384);
    for (int i = 0; i < 64 / WIDTH; ++i) tma_load(a + i * PANEL, &map_a, bar, {i * WIDTH, 0});
    for (int i = 0; i < 128 / WIDTH; ++i) tma_load(b + i * PANEL, &map_b, bar, {i * WIDTH, 0});
  }
  __syncthreads();
  mbarrier_wait(bar, 0);
  float d[64];
  wgmma_fence();
#pragma unroll
  for (int step = 0; step < 4; ++step) {
    const uint64_t left = k_major<SWIZZLE>(a + step * 32 / SWIZZLE * PANEL + step * 32 % SWIZZLE);
    const uint64_t right = advance(mn_major<SWIZZLE>(b, PANEL), step * 16 * SWIZZLE);
    wgmma_ss<128, Input::BF16, 0, 1>(d, left, right, step);
  }
  wgmma_commit();
  wgmma_wait<0>();
  wgmma_settle(d);
  for (int i = 0; i < 64; ++i)
    out[acc_row(threadIdx.x, i) * 128 + acc_column(threadIdx.x, i)] = d[i];
}

template <int SWIZZLE>
std::string after_tma() {
  Array<__nv_bfloat16> a(64 * 64), b(64 * 128);
  std::vector<float> expected(64 * 128);
  for (int i = 0; i < 64 * 64; ++i) a[i] = __float2bfloat16(small(i, 21, 4));
  for (int i = 0; i < 64 * 128; ++i) b[i] = __float2bfloat16(small(i, 22, 4));
  for (int i = 0; i < 64 * 128; ++i)
    for (int k = 0; k < 64; ++k)
      expected[i] += float(a[i / 128 * 64 + k]) * float(b[k * 128 + i % 128]);
  a.push(), b.push();
  const auto mode = CUtensorMapSwizzle(SWIZZLE == 128 ? 3 : SWIZZLE == 64 ? 2 : 1);
  CUtensorMap map_a, map_b;
  if (!make_bf16_map(&map_a, a.data, 64, 64, 128, 64, SWIZZLE / 2, mode) ||
      !make_bf16_map(&map_b, b.data, 64, 128, 256, 64, SWIZZLE / 2, mode))
    return "the tensor map was refused";
  Array<float> out(64 * 128);
  wgmma_after_tma<SWIZZLE><<<1, 128, 40 * 1024>>>(map_a, map_b, out.data);
  out.pull();
  return compare(out.host, expected);
}

int main() {
  check<64, 128>(), check<64, 64>(), check<64, 32>(), check<64, 0>();
  check<128, 64>(), check<128, 32>(), check<128, 0>();
  check_shared<96, Input::BF16, 64, MN_MAJOR, MN_MAJOR>();
  check_shared<64, Input::BF16, 0, MN_MAJOR, MN_MAJOR>();
  check_shared<128, Input::F16, 128, K_MAJOR, K_MAJOR>();
  check_shared<128, Input::F16, 128, MN_MAJOR, MN_MAJOR>();
  check_shared<64, Input::E4M3, 128, K_MAJOR, K_MAJOR>();
  check_shared<128, Input::E4M3, 128, K_MAJOR, K_MAJOR>();
  check_shared<256, Input::E4M3, 128, K_MAJOR, K_MAJOR>();
  const auto used = {"k_major", "mn_major", "advance", "wgmma_descriptor", "acc_row", "acc_column"};
  probe("wgmma_after_tma_128", used, after_tma<128>);
  probe("wgmma_after_tma_64", used, after_tma<64>);
  probe("wgmma_after_tma_32", used, after_tma<32>);
  return failures != 0;
}
