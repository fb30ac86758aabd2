// Tensor-core products by inline PTX that stands in headers of its own.
#include "ptx/mma.cuh"

constexpr int M = 256, N = 256, K = 256;

// One warp per 16 x 8 tile of C.
__global__ void gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c) {
  const int row = blockIdx.y * 16 + threadIdx.x / 4, column = threadIdx.x % 4 * 2;
  const int line = blockIdx.x * 8 + threadIdx.x / 4;
  float d[4] = {};
  for (int k = 0; k < K; k += 16) {
    const unsigned x[4] = {ptx::pair(a, row * K + k + column), ptx::pair(a, (row + 8) * K + k + column),
                           ptx::pair(a, row * K + k + column + 8),
                           ptx::pair(a, (row + 8) * K + k + column + 8)};
    const unsigned y[2] = {ptx::pair(b, line * K + k + column), ptx::pair(b, line * K + k + column + 8)};
    ptx::multiply(d, x, y);
  }
  for (int i = 0; i < 4; ++i)
    c[(row + i / 2 * 8) * N + blockIdx.x * 8 + column + i % 2] = __float2bfloat16(d[i]);
}

extern "C" void run(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c,
                    cudaStream_t stream) {
  gemm<<<dim3(N / 8, M / 16), 32, 0, stream>>>(a, b, c);
}
