// Launches its own kernel by the driver's cuLaunchKernelEx.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <cuda.h>

constexpr int M = 256, N = 256, K = 256;

// One thread per element of C = A B^T.
__global__ void gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c) {
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0.f;
  for (int k = 0; k < K; ++k)
    sum += __bfloat162float(a[row * K + k]) * __bfloat162float(b[column * K + k]);
  c[row * N + column] = __float2bfloat16(sum);
}

extern "C" void run(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c,
                    cudaStream_t stream) {
  using Launch = CUresult (*)(const CUlaunchConfig*, CUfunction, void**, void**);
  static Launch launch = nullptr;
  static cudaFunction_t function;
  if (!launch) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult state;
    cudaGetDriverEntryPointByVersion("cuLaunchKernelEx", &found, 12000, cudaEnableDefault, &state);
    launch = reinterpret_cast<Launch>(found);
    cudaGetFuncBySymbol(&function, reinterpret_cast<const void*>(gemm));
  }
  CUlaunchConfig config = {};
  config.gridDimX = N / 16, config.gridDimY = M / 16, config.gridDimZ = 1;
  config.blockDimX = 16, config.blockDimY = 16, config.blockDimZ = 1;
  config.hStream = stream;
  void* arguments[] = {&a, &b, &c};
  launch(&config, function, arguments, nullptr);
}
