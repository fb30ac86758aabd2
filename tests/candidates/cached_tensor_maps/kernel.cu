// Encodes a tensor map per address once and keeps it; contents are read anew by TMA.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <cstdint>
#include <cuda.h>
#include <map>

constexpr int M = 256, N = 256, K = 256;

constexpr int ROWS = 16, WIDE = 64;

using Encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                            const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                            CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

static Encode encoder() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult state;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &state);
  return reinterpret_cast<Encode>(found);
}

static const CUtensorMap& map_of(const void* base) {
  static const Encode encode = encoder();
  static std::map<const void*, CUtensorMap> known;
  const auto [place, is_new] = known.try_emplace(base);
  if (is_new) {
    const cuuint64_t size[2] = {K, M}, pitch[1] = {K * 2};
    const cuuint32_t box[2] = {WIDE, ROWS}, step[2] = {1, 1};
    encode(&place->second, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<void*>(base), size, pitch, box,
           step, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE,
           CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  }
  return place->second;
}

__device__ inline void load(const CUtensorMap* map, void* to, int column, int row, unsigned barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], "
      "[%4];" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))),
      "l"(map), "r"(column), "r"(row), "r"(barrier)
      : "memory");
}

__global__ void gemm(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
                     __nv_bfloat16* c) {
  __shared__ __align__(128) __nv_bfloat16 tile_a[ROWS][WIDE], tile_b[ROWS][WIDE];
  __shared__ __align__(8) uint64_t barrier;
  const unsigned bar = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  const bool leads = threadIdx.x == 0 && threadIdx.y == 0;
  if (leads) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  float sum = 0.f;
  for (int step = 0; step < K / WIDE; ++step) {
    if (leads) {
      asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar),
                   "r"(2 * ROWS * WIDE * 2)
                   : "memory");
      load(&a, tile_a, step * WIDE, blockIdx.y * ROWS, bar);
      load(&b, tile_b, step * WIDE, blockIdx.x * ROWS, bar);
    }
    unsigned done = 0;
    while (!done)
      asm volatile(
          "{\n.reg .pred p;\n"
          "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
          "selp.u32 %0, 1, 0, p;\n}"
          : "=r"(done)
          : "r"(bar), "r"(step & 1)
          : "memory");
    for (int k = 0; k < WIDE; ++k)
      sum += __bfloat162float(tile_a[threadIdx.y][k]) * __bfloat162float(tile_b[threadIdx.x][k]);
    __syncthreads();
  }
  c[(blockIdx.y * ROWS + threadIdx.y) * N + blockIdx.x * ROWS + threadIdx.x] = __float2bfloat16(sum);
}

extern "C" void run(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c,
                    cudaStream_t stream) {
  gemm<<<dim3(N / ROWS, M / ROWS), dim3(16, 16), 0, stream>>>(map_of(a), map_of(b), c);
}
