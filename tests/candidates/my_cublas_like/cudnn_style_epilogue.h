// Not cuDNN: one conversion.
#pragma once
#include <cuda_bf16.h>
#include <cuda_runtime.h>

__device__ inline __nv_bfloat16 cudnn_style_epilogue(float sum) { return __float2bfloat16(sum); }
