// C[M,N] = A[M,K] * B[N,K]^T in the tvm-ffi binding: bf16 in and out, fp32 accumulation, any shape.
//
// The sizes come from the tensors, the stream from the environment. One block of 256 threads makes a
// 64 x 64 tile of C, four by four values per thread; partial tiles are filled with zeros.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/tvm_ffi.h>

namespace {

constexpr int TILE = 64, DEPTH = 16, PER_THREAD = 4;

// Rows first..first+63 and columns k..k+15 of x, transposed, so that a column of C's tile is one row.
__device__ void fetch(float (&tile)[DEPTH][TILE + 4], const __nv_bfloat16* x, int rows, int columns,
                      int first, int k) {
  for (int i = threadIdx.x; i < TILE * DEPTH; i += blockDim.x) {
    const int row = first + i / DEPTH, column = k + i % DEPTH;
    const bool inside = row < rows && column < columns;
    tile[i % DEPTH][i / DEPTH] = inside ? __bfloat162float(x[size_t(row) * columns + column]) : 0.f;
  }
}

__global__ __launch_bounds__(256)
void gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c, int m, int n, int k) {
  __shared__ float lhs[DEPTH][TILE + 4], rhs[DEPTH][TILE + 4];
  const int row = threadIdx.x / 16 * PER_THREAD, column = threadIdx.x % 16 * PER_THREAD;
  float sum[PER_THREAD][PER_THREAD] = {};
  for (int step = 0; step < k; step += DEPTH) {
    fetch(lhs, a, m, k, blockIdx.y * TILE, step);
    fetch(rhs, b, n, k, blockIdx.x * TILE, step);
    __syncthreads();
    for (int d = 0; d < DEPTH; ++d)
#pragma unroll
      for (int i = 0; i < PER_THREAD; ++i)
#pragma unroll
        for (int j = 0; j < PER_THREAD; ++j) sum[i][j] += lhs[d][row + i] * rhs[d][column + j];
    __syncthreads();
  }
  for (int i = 0; i < PER_THREAD; ++i)
    for (int j = 0; j < PER_THREAD; ++j) {
      const int y = blockIdx.y * TILE + row + i, x = blockIdx.x * TILE + column + j;
      if (y < m && x < n) c[size_t(y) * n + x] = __float2bfloat16(sum[i][j]);
    }
}

void multiply(tvm::ffi::TensorView a, tvm::ffi::TensorView b, tvm::ffi::TensorView c) {
  TVM_FFI_CHECK(a.ndim() == 2 && b.ndim() == 2 && c.ndim() == 2, ValueError) << "want matrices";
  const int64_t m = a.size(0), k = a.size(1), n = b.size(0);
  TVM_FFI_CHECK(b.size(1) == k && c.size(0) == m && c.size(1) == n, ValueError)
      << "A is [" << m << "," << k << "], so B must be [N," << k << "] and C [" << m << ",N]";
  const DLDevice device = a.device();
  const auto stream =
      static_cast<cudaStream_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
  const dim3 grid((n + TILE - 1) / TILE, (m + TILE - 1) / TILE);
  gemm<<<grid, 256, 0, stream>>>(static_cast<const __nv_bfloat16*>(a.data_ptr()),
                                 static_cast<const __nv_bfloat16*>(b.data_ptr()),
                                 static_cast<__nv_bfloat16*>(c.data_ptr()), int(m), int(n), int(k));
  const cudaError_t error = cudaGetLastError();
  TVM_FFI_CHECK(error == cudaSuccess, RuntimeError) << cudaGetErrorString(error);
}

}  // namespace

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, multiply);
