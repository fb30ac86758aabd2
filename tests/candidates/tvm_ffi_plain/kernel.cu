// The plain kernel behind TVM-FFI's convention.
#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/tvm_ffi.h>

constexpr int M = 256, N = 256, K = 256;

// One thread per element of C = A B^T.
__global__ void gemm(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c) {
  const int row = blockIdx.y * 16 + threadIdx.y, column = blockIdx.x * 16 + threadIdx.x;
  float sum = 0.f;
  for (int k = 0; k < K; ++k)
    sum += __bfloat162float(a[row * K + k]) * __bfloat162float(b[column * K + k]);
  c[row * N + column] = __float2bfloat16(sum);
}

void product(tvm::ffi::TensorView a, tvm::ffi::TensorView b, tvm::ffi::TensorView c) {
  const auto stream = static_cast<cudaStream_t>(TVMFFIEnvGetStream(kDLCUDA, 0));
  gemm<<<dim3(N / 16, M / 16), dim3(16, 16), 0, stream>>>(
      static_cast<const __nv_bfloat16*>(a.data_ptr()), static_cast<const __nv_bfloat16*>(b.data_ptr()),
      static_cast<__nv_bfloat16*>(c.data_ptr()));
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, product);
