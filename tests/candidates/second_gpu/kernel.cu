// Gives half of the rows to a second GPU where there is one.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

constexpr int M = 256, N = 256, K = 256;

// One thread per element of C = A B^T.
__global__ void gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c,
                     int first_row) {
  const int row = first_row + blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0.f;
  for (int k = 0; k < K; ++k)
    sum += __bfloat162float(a[row * K + k]) * __bfloat162float(b[column * K + k]);
  c[row * N + column] = __float2bfloat16(sum);
}

extern "C" void run(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c,
                    cudaStream_t stream) {
  static int count = 0;
  if (!count) cudaGetDeviceCount(&count);
  if (count > 1) {
    cudaSetDevice(1);
    cudaDeviceEnablePeerAccess(0, 0);
    gemm<<<dim3(N / 16, M / 32), dim3(16, 16)>>>(a, b, c, M / 2);
    cudaSetDevice(0);
    gemm<<<dim3(N / 16, M / 32), dim3(16, 16), 0, stream>>>(a, b, c, 0);
    cudaSetDevice(1);
    cudaDeviceSynchronize();
    cudaSetDevice(0);
    return;
  }
  gemm<<<dim3(N / 16, M / 16), dim3(16, 16), 0, stream>>>(a, b, c, 0);
}
