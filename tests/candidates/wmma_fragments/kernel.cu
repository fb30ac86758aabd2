// Tensor cores by the toolkit's own mma.h.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <mma.h>

constexpr int M = 256, N = 256, K = 256;

using namespace nvcuda;

// One warp per 16 x 16 tile of C.
__global__ void gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c) {
  __shared__ __align__(32) float tile[256];
  wmma::fragment<wmma::matrix_a, 16, 16, 16, __nv_bfloat16, wmma::row_major> x;
  wmma::fragment<wmma::matrix_b, 16, 16, 16, __nv_bfloat16, wmma::col_major> y;
  wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
  wmma::fill_fragment(sum, 0.f);
  for (int k = 0; k < K; k += 16) {
    wmma::load_matrix_sync(x, a + blockIdx.y * 16 * K + k, K);
    wmma::load_matrix_sync(y, b + blockIdx.x * 16 * K + k, K);
    wmma::mma_sync(sum, x, y, sum);
  }
  wmma::store_matrix_sync(tile, sum, 16, wmma::mem_row_major);
  __syncwarp();
  for (int i = threadIdx.x; i < 256; i += 32)
    c[(blockIdx.y * 16 + i / 16) * N + blockIdx.x * 16 + i % 16] = __float2bfloat16(tile[i]);
}

extern "C" void run(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c,
                    cudaStream_t stream) {
  gemm<<<dim3(N / 16, M / 16), 32, 0, stream>>>(a, b, c);
}
