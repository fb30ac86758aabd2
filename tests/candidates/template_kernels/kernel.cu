// One kernel template, several instances, chosen at run time; very long names.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <type_traits>

constexpr int M = 256, N = 256, K = 256;

template <int... shape>
struct Tile_of_a_name_that_goes_on_and_on_until_it_is_longer_than_a_terminal_is_wide {};

template <typename Tile, int unroll, bool is_last>
__global__ void gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int first) {
  const int row = first + blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0.f;
#pragma unroll unroll
  for (int k = 0; k < K; ++k)
    sum += __bfloat162float(a[row * K + k]) * __bfloat162float(b[column * K + k]);
  if constexpr (is_last) sum += 0.f;
  c[row * N + column] = __float2bfloat16(sum);
}

using Small = Tile_of_a_name_that_goes_on_and_on_until_it_is_longer_than_a_terminal_is_wide<16, 16, 16>;
using Large = Tile_of_a_name_that_goes_on_and_on_until_it_is_longer_than_a_terminal_is_wide<16, 16, 256>;

extern "C" void run(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c,
                    cudaStream_t stream) {
  const dim3 grid(N / 16, M / 32), block(16, 16);
  gemm<Small, 4, false><<<grid, block, 0, stream>>>(a, b, c, 0);
  gemm<Large, 8, true><<<grid, block, 0, stream>>>(a, b, c, M / 2);
}
