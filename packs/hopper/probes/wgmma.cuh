// What the wgmma probe programs share: operands laid out by hand, products checked exactly.
#pragma once
#include "probe.cuh"
#include "../templates/sync.cuh"
#include "../templates/wgmma.cuh"
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

using namespace ptx;

enum Major { K_MAJOR, MN_MAJOR };

template <Input INPUT>
constexpr int element_bytes = INPUT == Input::E4M3 ? 1 : 2;

// K of the whole probe: 128 bytes, that is four steps of wgmma.
template <Input INPUT>
constexpr int depth = 128 / element_bytes<INPUT>;

template <Input INPUT>
std::vector<uint8_t> encode(const std::vector<int>& values) {
  std::vector<uint8_t> bytes(values.size() * element_bytes<INPUT>);
  for (size_t i = 0; i < values.size(); ++i) {
    if (INPUT == Input::BF16)
      reinterpret_cast<__nv_bfloat16*>(bytes.data())[i] = __float2bfloat16(values[i]);
    if (INPUT == Input::F16) reinterpret_cast<__half*>(bytes.data())[i] = __float2half(values[i]);
    if (INPUT == Input::E4M3)
      reinterpret_cast<__nv_fp8_e4m3*>(bytes.data())[i] = __nv_fp8_e4m3(float(values[i]));
  }
  return bytes;
}

// Where a byte of the operand lies. SWIZZLE 0 puts core matrices row group by row group (K-major)
// or k group by k group (MN-major); otherwise panels of SWIZZLE bytes, as the TMA writes them.
template <int ROWS, int DEPTH, int BYTES, int SWIZZLE, Major MAJOR>
struct Layout {
  static constexpr int PANEL_ROWS = SWIZZLE / 2;
  static constexpr int PANELS = SWIZZLE == 0 ? 1 : (ROWS + PANEL_ROWS - 1) / PANEL_ROWS;
  static constexpr int K_PANEL_BYTES = ROWS * SWIZZLE, MN_PANEL_BYTES = DEPTH * SWIZZLE;
  static constexpr int SIZE =
      MAJOR == K_MAJOR || SWIZZLE == 0 ? ROWS * 128 : PANELS * MN_PANEL_BYTES;

  static __host__ __device__ int mixed(int offset) {
    const int bits = SWIZZLE == 128 ? 7 : SWIZZLE == 64 ? 3 : SWIZZLE == 32 ? 1 : 0;
    return offset ^ (((offset >> 7) & bits) << 4);
  }
  static __host__ __device__ int at(int row, int k) {
    if constexpr (SWIZZLE == 0 && MAJOR == K_MAJOR)
      return row / 8 * 1024 + k * BYTES / 16 * 128 + row % 8 * 16 + k * BYTES % 16;
    else if constexpr (SWIZZLE == 0)
      return k / 8 * (ROWS * 16) + row / 8 * 128 + k % 8 * 16 + row % 8 * 2;
    else if constexpr (MAJOR == K_MAJOR)
      return mixed(k * BYTES / SWIZZLE * K_PANEL_BYTES + row * SWIZZLE + k * BYTES % SWIZZLE);
    else
      return mixed(row / PANEL_ROWS * MN_PANEL_BYTES + k * SWIZZLE + row % PANEL_ROWS * 2);
  }
  static __device__ uint64_t descriptor(uint32_t base, int step) {
    if constexpr (SWIZZLE == 0 && MAJOR == K_MAJOR)
      return k_major_plain(base + step * 256, 128, 1024);
    else if constexpr (SWIZZLE == 0)
      return mn_major_plain(base + step * 2 * ROWS * 16, 128, ROWS * 16);
    else if constexpr (MAJOR == K_MAJOR) {
      const uint64_t panel = k_major<SWIZZLE>(base + step * 32 / SWIZZLE * K_PANEL_BYTES);
      return advance(panel, step * 32 % SWIZZLE);
    } else
      return advance(mn_major<SWIZZLE>(base, MN_PANEL_BYTES), step * 16 * SWIZZLE);
  }
};

template <class Place, int ROWS, int DEPTH, int BYTES>
__device__ void lay_out(uint8_t* to, const uint8_t* from) {
  for (int i = threadIdx.x; i < ROWS * DEPTH; i += 128)
    for (int b = 0; b < BYTES; ++b) to[Place::at(i / DEPTH, i % DEPTH) + b] = from[i * BYTES + b];
}

__device__ inline uint8_t* aligned_shared() {
  extern __shared__ uint8_t raw[];
  return raw + (align_up(smem_address(raw), 1024) - smem_address(raw));
}

// Twice A B^T: the first pass must ignore what is in d, the second must add.
template <int N, Input INPUT, int SWIZZLE, Major MAJOR_A, Major MAJOR_B>
__global__ __launch_bounds__(128) void wgmma_shared(const uint8_t* a, const uint8_t* b,
                                                    float* out) {
  constexpr int BYTES = element_bytes<INPUT>, DEPTH = depth<INPUT>;
  using PlaceA = Layout<64, DEPTH, BYTES, SWIZZLE, MAJOR_A>;
  using PlaceB = Layout<N, DEPTH, BYTES, SWIZZLE, MAJOR_B>;
  uint8_t* tile_a = aligned_shared();
  uint8_t* tile_b = tile_a + PlaceA::SIZE;
  lay_out<PlaceA, 64, DEPTH, BYTES>(tile_a, a);
  lay_out<PlaceB, N, DEPTH, BYTES>(tile_b, b);
  fence_async_shared();
  __syncthreads();
  float d[N / 2];
  for (int i = 0; i < N / 2; ++i) d[i] = 777.f;
  wgmma_fence();
#pragma unroll
  for (int step = 0; step < 8; ++step)
    wgmma_ss<N, INPUT, MAJOR_A, MAJOR_B>(d, PlaceA::descriptor(smem_address(tile_a), step % 4),
                                         PlaceB::descriptor(smem_address(tile_b), step % 4), step);
  wgmma_commit();
  wgmma_wait<0>();
  wgmma_settle(d);
  for (int i = 0; i < N / 2; ++i)
    out[acc_row(threadIdx.x, i) * N + acc_column(threadIdx.x, i)] = d[i];
}

template <int N, Input INPUT, int SWIZZLE, Major MAJOR_B>
__global__ __launch_bounds__(128) void wgmma_registers(const uint8_t* a, const uint8_t* b,
                                                       float* out) {
  constexpr int BYTES = element_bytes<INPUT>, DEPTH = depth<INPUT>;
  using PlaceB = Layout<N, DEPTH, BYTES, SWIZZLE, MAJOR_B>;
  uint8_t* tile_b = aligned_shared();
  lay_out<PlaceB, N, DEPTH, BYTES>(tile_b, b);
  fence_async_shared();
  __syncthreads();
  const int thread = threadIdx.x;
  uint32_t fragment[16];
  for (int i = 0; i < 16; ++i) {
    const int step = i / 4, r = i % 4, row = 16 * (thread / 32) + thread % 32 / 4 + 8 * (r % 2);
    const int byte = 32 * step + 4 * (thread % 4) + 16 * (r / 2);
    fragment[i] = *reinterpret_cast<const uint32_t*>(a + row * 128 + byte);
  }
  float d[N / 2];
  for (int i = 0; i < N / 2; ++i) d[i] = 777.f;
  wgmma_fence();
#pragma unroll
  for (int step = 0; step < 8; ++step)
    wgmma_rs<N, INPUT, MAJOR_B>(d, fragment + 4 * (step % 4),
                                PlaceB::descriptor(smem_address(tile_b), step % 4), step);
  wgmma_commit();
  wgmma_wait<0>();
  wgmma_settle(d);
  wgmma_settle(fragment);
  for (int i = 0; i < N / 2; ++i) out[acc_row(thread, i) * N + acc_column(thread, i)] = d[i];
}

constexpr int WGMMA_SHARED_BYTES = 96 * 1024;

template <int N, Input INPUT, class Kernel>
std::string product(Kernel* kernel) {
  constexpr int DEPTH = depth<INPUT>;
  std::vector<int> a(64 * DEPTH), b(N * DEPTH);
  for (size_t i = 0; i < a.size(); ++i) a[i] = small(i, 11, 4);
  for (size_t i = 0; i < b.size(); ++i) b[i] = small(i, 12, 4);
  const auto a_bytes = encode<INPUT>(a), b_bytes = encode<INPUT>(b);
  Array<uint8_t> a_device(a_bytes.size()), b_device(b_bytes.size());
  a_device.host = a_bytes, b_device.host = b_bytes;
  a_device.push(), b_device.push();
  std::vector<float> expected(64 * N);
  for (int m = 0; m < 64; ++m)
    for (int n = 0; n < N; ++n)
      for (int k = 0; k < DEPTH; ++k)
        expected[m * N + n] += 2.f * a[m * DEPTH + k] * b[n * DEPTH + k];
  Array<float> out(64 * N);
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, WGMMA_SHARED_BYTES);
  kernel<<<1, 128, WGMMA_SHARED_BYTES>>>(a_device.data, b_device.data, out.data);
  out.pull();
  return compare(out.host, expected);
}

inline const char* name_of(Input input) {
  return input == Input::BF16 ? "bf16" : input == Input::F16 ? "f16" : "e4m3";
}

template <int N, Input INPUT, int SWIZZLE, Major MAJOR_A, Major MAJOR_B>
void check_shared() {
  const std::string name = text("wgmma_shared_%s_n%d_swizzle%d_%s_%s", name_of(INPUT), N, SWIZZLE,
                                MAJOR_A == K_MAJOR ? "k" : "m", MAJOR_B == K_MAJOR ? "k" : "n");
  const char* layout_a = MAJOR_A == K_MAJOR ? "k_major" : "mn_major";
  const char* layout_b = MAJOR_B == K_MAJOR ? "k_major" : "mn_major";
  if (SWIZZLE == 0) layout_a = MAJOR_A == K_MAJOR ? "k_major_plain" : "mn_major_plain";
  if (SWIZZLE == 0) layout_b = MAJOR_B == K_MAJOR ? "k_major_plain" : "mn_major_plain";
  probe(name.c_str(), {"wgmma_ss", "wgmma_fence", "wgmma_commit", "wgmma_wait", layout_a, layout_b},
        [] { return product<N, INPUT>(wgmma_shared<N, INPUT, SWIZZLE, MAJOR_A, MAJOR_B>); });
}

template <int N, Input INPUT, int SWIZZLE, Major MAJOR_B>
void check_registers() {
  const std::string name = text("wgmma_registers_%s_n%d_swizzle%d_%s", name_of(INPUT), N, SWIZZLE,
                                MAJOR_B == K_MAJOR ? "k" : "n");
  probe(name.c_str(), {"wgmma_rs", "wgmma_settle"},
        [] { return product<N, INPUT>(wgmma_registers<N, INPUT, SWIZZLE, MAJOR_B>); });
}
