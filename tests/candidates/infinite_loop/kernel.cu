// Never ends.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

constexpr int M = 256, N = 256, K = 256;

__global__ void forever(__nv_bfloat16* c) {
  __shared__ volatile int go;
  go = 0;
  while (!go) {
  }
  c[threadIdx.x] = __float2bfloat16(1.f);
}

extern "C" void run(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c,
                    cudaStream_t stream) {
  forever<<<1, 32, 0, stream>>>(c);
}
