// Kernels in an anonymous namespace, static and with C linkage.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

constexpr int M = 256, N = 256, K = 256;

namespace {

// One thread per element of C = A B^T.
__global__ void upper(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c) {
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0.f;
  for (int k = 0; k < K; ++k)
    sum += __bfloat162float(a[row * K + k]) * __bfloat162float(b[column * K + k]);
  c[row * N + column] = __float2bfloat16(sum);
}
}  // namespace

static __global__ void lower(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c) {
  const int row = M / 2 + blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0.f;
  for (int k = 0; k < K; ++k)
    sum += __bfloat162float(a[row * K + k]) * __bfloat162float(b[column * K + k]);
  c[row * N + column] = __float2bfloat16(sum);
}

extern "C" __global__ void nothing() {}

extern "C" void run(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c,
                    cudaStream_t stream) {
  const dim3 grid(N / 16, M / 32), block(16, 16);
  upper<<<grid, block, 0, stream>>>(a, b, c);
  lower<<<grid, block, 0, stream>>>(a, b, c);
  nothing<<<1, 1, 0, stream>>>();
}
