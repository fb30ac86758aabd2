"""A small kernel of ours for each language and binding: Y[r, c] = X[r, c] * S[r], all bfloat16.

It shows form, not speed tricks: entry point, inline PTX, launch on the stream, checked errors. Each
one is compiled in the tests. C++ has its bfloat16 as uint16_t, as the prototypes do.
"""

from evaluator.records.candidate import Binding

TITLE = "Y[r, c] = X[r, c] * S[r]; X and Y are bfloat16 [4096, 1024], S is bfloat16 [4096]"

_HEADERS = """\
#include <cstdint>
#include <cstdio>
#include <cuda_bf16.h>
#include <cuda_runtime.h>
"""

_KERNEL = """\
namespace {

constexpr int ROWS = 4096, COLUMNS = 1024, THREADS = 128, PER_THREAD = 8;
static_assert(COLUMNS == THREADS * PER_THREAD, "a block takes one row");

// 16 bytes that nobody reads again: not kept in L1. The address is a multiple of 16.
__device__ inline uint4 load16(const void* address) {
  uint4 v;
  asm volatile("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(address));
  return v;
}

// Both bfloat16 halves of `pair`, each times its half of `factor`.
__device__ inline uint32_t multiply2(uint32_t pair, uint32_t factor) {
  uint32_t product;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(product) : "r"(pair), "r"(factor));
  return product;
}

__global__ __launch_bounds__(THREADS)
void scale_rows(const __nv_bfloat16* x, const __nv_bfloat16* s, __nv_bfloat16* y) {
  const size_t place = size_t(blockIdx.x) * COLUMNS + threadIdx.x * PER_THREAD;
  const uint32_t factor = __bfloat16_as_ushort(s[blockIdx.x]) * 0x10001u;
  uint4 v = load16(x + place);
  v.x = multiply2(v.x, factor);
  v.y = multiply2(v.y, factor);
  v.z = multiply2(v.z, factor);
  v.w = multiply2(v.w, factor);
  *reinterpret_cast<uint4*>(y + place) = v;
}

}  // namespace
"""

_C_ENTRY = """\
extern "C" void run(const __nv_bfloat16* X, const __nv_bfloat16* S, __nv_bfloat16* Y,
                    cudaStream_t stream) {
  scale_rows<<<ROWS, THREADS, 0, stream>>>(X, S, Y);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) std::fprintf(stderr, "scale_rows: %s\\n", cudaGetErrorString(error));
}
"""

_FFI_HEADERS = """\
#include <tvm/ffi/extra/c_env_api.h>
#include <tvm/ffi/tvm_ffi.h>
"""

_FFI_ENTRY = """\
void run_tensors(tvm::ffi::TensorView X, tvm::ffi::TensorView S, tvm::ffi::TensorView Y) {
  const DLDevice device = X.device();
  cudaSetDevice(device.device_id);
  auto stream =
      static_cast<cudaStream_t>(TVMFFIEnvGetStream(device.device_type, device.device_id));
  scale_rows<<<ROWS, THREADS, 0, stream>>>(static_cast<const __nv_bfloat16*>(X.data_ptr()),
                                           static_cast<const __nv_bfloat16*>(S.data_ptr()),
                                           static_cast<__nv_bfloat16*>(Y.data_ptr()));
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) std::fprintf(stderr, "scale_rows: %s\\n", cudaGetErrorString(error));
}

TVM_FFI_DLL_EXPORT_TYPED_FUNC(run, run_tensors);
"""

_CPP = """\
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace {

constexpr std::size_t ROWS = 4096, COLUMNS = 1024;

float widen(std::uint16_t bits) {
  const std::uint32_t wide = std::uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

// To the nearest bfloat16, ties to even; inputs here are never NaN.
std::uint16_t narrow(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return std::uint16_t((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

}  // namespace

extern "C" void run(const std::uint16_t* X, const std::uint16_t* S, std::uint16_t* Y) {
  for (std::size_t row = 0; row < ROWS; ++row) {
    const float factor = widen(S[row]);
    for (std::size_t i = row * COLUMNS; i < (row + 1) * COLUMNS; ++i)
      Y[i] = narrow(widen(X[i]) * factor);
  }
}
"""

_TRITON = """\
import triton
import triton.language as tl

ROWS, COLUMNS = 4096, 1024


@triton.jit
def scale_rows(x, s, y, COLUMNS: tl.constexpr):
    row = tl.program_id(0)
    place = row * COLUMNS + tl.arange(0, COLUMNS)
    values = tl.load(x + place)
    tl.store(y + place, values * tl.load(s + row))


def run(X, S, Y):
    scale_rows[(ROWS,)](X, S, Y, COLUMNS=COLUMNS, num_warps=4)
"""


def example(language: str, binding: str) -> str:
    """The whole source file; raises ValueError for a pair that there is not."""
    if language == "triton":
        return _TRITON
    if language == "cpp" and binding == Binding.C:
        return _CPP
    if language == "cuda" and binding == Binding.C:
        return "\n".join([_HEADERS, _KERNEL, _C_ENTRY])
    if language == "cuda" and binding == Binding.TVM_FFI:
        return "\n".join([_HEADERS + _FFI_HEADERS, _KERNEL, _FFI_ENTRY])
    raise ValueError(f"no example for language {language!r} with binding {binding!r}")
