#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace ptx {

// Two neighbouring elements in one register.
__device__ inline unsigned pair(const __nv_bfloat16* from, int at) {
  return *reinterpret_cast<const unsigned*>(from + at);
}

}  // namespace ptx
