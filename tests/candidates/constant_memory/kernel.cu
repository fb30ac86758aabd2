// Copies a table to constant memory in each call and reads it in the kernel.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

constexpr int M = 256, N = 256, K = 256;

__constant__ float scale[4];

// One thread per element of C = A B^T.
__global__ void gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c) {
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0.f;
  for (int k = 0; k < K; ++k)
    sum += __bfloat162float(a[row * K + k]) * __bfloat162float(b[column * K + k]);
  c[row * N + column] = __float2bfloat16(sum * scale[row & 3]);
}

extern "C" void run(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c,
                    cudaStream_t stream) {
  static const float ones[4] = {1.f, 1.f, 1.f, 1.f};
  cudaMemcpyToSymbolAsync(scale, ones, sizeof ones, 0, cudaMemcpyHostToDevice, stream);
  gemm<<<dim3(N / 16, M / 16), dim3(16, 16), 0, stream>>>(a, b, c);
}
