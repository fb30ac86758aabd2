// Clusters of two blocks; each sums half of K and the pair adds up through distributed shared memory.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

constexpr int M = 256, N = 256, K = 256;

__global__ __cluster_dims__(2, 1, 1)
void gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c) {
  __shared__ float sums[256];
  const cg::cluster_group cluster = cg::this_cluster();
  const int rank = cluster.block_rank(), mine = threadIdx.y * 16 + threadIdx.x;
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x / 2 * 16 + threadIdx.x;
  float sum = 0.f;
  for (int k = rank * K / 2; k < (rank + 1) * K / 2; ++k)
    sum += __bfloat162float(a[row * K + k]) * __bfloat162float(b[column * K + k]);
  sums[mine] = sum;
  cluster.sync();
  if (rank == 0) c[row * N + column] = __float2bfloat16(sum + cluster.map_shared_rank(sums, 1)[mine]);
  cluster.sync();
}

extern "C" void run(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c,
                    cudaStream_t stream) {
  gemm<<<dim3(N / 8, M / 16), dim3(16, 16), 0, stream>>>(a, b, c);
}
