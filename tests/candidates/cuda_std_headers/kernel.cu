// Uses libcu++ and cooperative groups from the toolkit.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <cooperative_groups.h>
#include <cuda/std/array>
#include <cuda/std/utility>

namespace cg = cooperative_groups;

constexpr int M = 256, N = 256, K = 256;

// One warp per element, summed by shuffles.
__global__ void gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c) {
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const int row = blockIdx.y, column = blockIdx.x * 8 + warp.meta_group_rank();
  cuda::std::array<float, 2> sums = {0.f, 0.f};
  for (int k = warp.thread_rank(); k < K; k += 64)
    for (int i = 0; i < 2; ++i)
      sums[i] += __bfloat162float(a[row * K + k + 32 * i]) * __bfloat162float(b[column * K + k + 32 * i]);
  float sum = sums[0] + sums[1];
  for (int step = 16; step; step /= 2) sum += warp.shfl_down(sum, step);
  if (warp.thread_rank() == 0) c[row * N + column] = __float2bfloat16(sum);
}

extern "C" void run(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c,
                    cudaStream_t stream) {
  gemm<<<dim3(N / 8, M), 256, 0, stream>>>(a, b, c);
}
