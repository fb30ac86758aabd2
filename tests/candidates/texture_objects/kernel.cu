// Reads its inputs through texture objects, made once per address.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <map>

constexpr int M = 256, N = 256, K = 256;

static cudaTextureObject_t texture_of(const void* base) {
  static std::map<const void*, cudaTextureObject_t> known;
  const auto [place, is_new] = known.try_emplace(base);
  if (is_new) {
    cudaResourceDesc memory = {};
    memory.resType = cudaResourceTypeLinear;
    memory.res.linear.devPtr = const_cast<void*>(base);
    memory.res.linear.desc = cudaCreateChannelDesc<unsigned short>();
    memory.res.linear.sizeInBytes = M * K * 2;
    cudaTextureDesc how = {};
    how.readMode = cudaReadModeElementType;
    cudaCreateTextureObject(&place->second, &memory, &how, nullptr);
  }
  return place->second;
}

__device__ inline float fetch(cudaTextureObject_t from, int i) {
  return __bfloat162float(__ushort_as_bfloat16(tex1Dfetch<unsigned short>(from, i)));
}

__global__ void gemm(cudaTextureObject_t a, cudaTextureObject_t b, __nv_bfloat16* c) {
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0.f;
  for (int k = 0; k < K; ++k) sum += fetch(a, row * K + k) * fetch(b, column * K + k);
  c[row * N + column] = __float2bfloat16(sum);
}

extern "C" void run(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c,
                    cudaStream_t stream) {
  gemm<<<dim3(N / 16, M / 16), dim3(16, 16), 0, stream>>>(texture_of(a), texture_of(b), c);
}
