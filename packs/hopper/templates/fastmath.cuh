// Short arithmetic for softmax and epilogues: single instructions of the special-function unit and
// reductions over the four lanes that share an accumulator row. One thread each, unless said
// otherwise.
#include <cstdint>

namespace ptx {

// 2^x, about 2 units in the last place; 2^(-inf) = 0. Fold the scale in: e^(s * x) = exp2(s * log2e
// * x).
__device__ inline float exp2_approx(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// 2^(x * scale - offset): one fused multiply-add, one exp2. The inner step of every online softmax.
__device__ inline float exp2_scaled(float x, float scale, float offset) {
  return exp2_approx(fmaf(x, scale, -offset));
}

// log2(x); ln(x) = 0.6931472f * log2_approx(x).
__device__ inline float log2_approx(float x) {
  float y;
  asm("lg2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ inline float rcp_approx(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ inline float rsqrt_approx(float x) {
  float y;
  asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ inline float tanh_approx(float x) {
  float y;
  asm("tanh.approx.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// a * b + c on two bf16 at once (one rounding each). Hopper has no packed float FMA.
__device__ inline uint32_t fma_bf16x2(uint32_t a, uint32_t b, uint32_t c) {
  uint32_t d;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}

// Maximum and sum over the 4 lanes of a quad, which together hold a row of a wgmma accumulator.
// Whole warp, converged; every lane gets the result. Reduce the thread's own values first.
__device__ inline float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffff, x, 2));
}

__device__ inline float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffff, x, 1);
  return x + __shfl_xor_sync(0xffffffff, x, 2);
}

}  // namespace ptx
