// Makes a library of 64 MiB.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

constexpr int M = 256, N = 256, K = 256;

// One thread per element of C = A B^T.
__global__ void gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c) {
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0.f;
  for (int k = 0; k < K; ++k)
    sum += __bfloat162float(a[row * K + k]) * __bfloat162float(b[column * K + k]);
  c[row * N + column] = __float2bfloat16(sum);
}

asm(".pushsection .data\n.global ballast\nballast: .fill 67108864, 1, 1\n.popsection\n");

extern "C" void run(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c,
                    cudaStream_t stream) {
  gemm<<<dim3(N / 16, M / 16), dim3(16, 16), 0, stream>>>(a, b, c);
}
