// Global objects with constructors prepare a table before the first call.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <map>
#include <string>
#include <vector>

constexpr int M = 256, N = 256, K = 256;

// One thread per element of C = A B^T.
__global__ void gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c) {
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0.f;
  for (int k = 0; k < K; ++k)
    sum += __bfloat162float(a[row * K + k]) * __bfloat162float(b[column * K + k]);
  c[row * N + column] = __float2bfloat16(sum);
}

struct Plan {
  std::map<std::string, dim3> grids;
  std::vector<int> order;
  Plan() {
    grids["whole"] = dim3(N / 16, M / 16);
    for (int i = 0; i < 16; ++i) order.push_back(i);
  }
};
static const Plan plan;

extern "C" void run(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c,
                    cudaStream_t stream) {
  gemm<<<plan.grids.at("whole"), dim3(16, 16), 0, stream>>>(a, b, c);
}
