// Not using cublas here. Docs say: #include <cublas_v2.h>
/* cudnn's layout differs, and cutlass/cutlass.h is not needed either */
#include <cuda_bf16.h>
#include <cuda_runtime.h>

constexpr int M = 256, N = 256, K = 256;

#if 0
#include <cublas_v2.h>
#endif
#if __has_include(<cublas_v2.h>)
#define COULD_BUT_WILL_NOT 1
#endif

static const char* note = "faster than cublasGemmEx( and cudnnConvolutionForward(";
static const char* doc = R"x(
#include <cublas_v2.h>
)x";
extern "C" const char* kernel_note() { return note ? doc : note; }

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
  gemm<<<dim3(N / 16, M / 16), dim3(16, 16), 0, stream>>>(a, b, c);
}
