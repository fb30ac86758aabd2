// Host code with exceptions and run-time type information.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <stdexcept>
#include <typeinfo>

constexpr int M = 256, N = 256, K = 256;

// One thread per element of C = A B^T.
__global__ void gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c) {
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0.f;
  for (int k = 0; k < K; ++k)
    sum += __bfloat162float(a[row * K + k]) * __bfloat162float(b[column * K + k]);
  c[row * N + column] = __float2bfloat16(sum);
}

struct Launch {
  virtual ~Launch() = default;
  virtual dim3 grid() const { throw std::logic_error("no grid"); }
};
struct Whole : Launch {
  dim3 grid() const override { return dim3(N / 16, M / 16); }
};

static dim3 grid_of(const Launch& launch) {
  try {
    return launch.grid();
  } catch (const std::logic_error&) {
    return typeid(launch) == typeid(Whole) ? dim3(1) : Whole().grid();
  }
}

extern "C" void run(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c,
                    cudaStream_t stream) {
  gemm<<<grid_of(Launch()), dim3(16, 16), 0, stream>>>(a, b, c);
}
