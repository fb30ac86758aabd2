// The second kernel starts early and waits for the first by griddepcontrol.
#include <cuda_bf16.h>
#include <cuda_runtime.h>

constexpr int M = 256, N = 256, K = 256;

// A share of K of one element, added up by `finish`.
__global__ void part(const __nv_bfloat16* a, const __nv_bfloat16* b, float* sums, int first, int count) {
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0.f;
  for (int k = first; k < first + count; ++k)
    sum += __bfloat162float(a[row * K + k]) * __bfloat162float(b[column * K + k]);
  sums[row * N + column] = sum;
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}

__global__ void finish(const float* sums, __nv_bfloat16* c, int parts) {
  const int i = blockIdx.x * 256 + threadIdx.x;
  asm volatile("griddepcontrol.wait;" ::: "memory");
  float sum = 0.f;
  for (int p = 0; p < parts; ++p) sum += sums[p * M * N + i];
  c[i] = __float2bfloat16(sum);
}

extern "C" void run(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c,
                    cudaStream_t stream) {
  static float* sums = nullptr;
  if (!sums) cudaMalloc(&sums, M * N * sizeof(float));
  part<<<dim3(N / 16, M / 16), dim3(16, 16), 0, stream>>>(a, b, sums, 0, K);
  cudaLaunchAttribute early = {};
  early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(M * N / 256);
  config.blockDim = dim3(256);
  config.stream = stream;
  config.attrs = &early;
  config.numAttrs = 1;
  cudaLaunchKernelEx(&config, finish, static_cast<const float*>(sums), c, 1);
}
