// Packed float arithmetic, and an exponential outside the special-function unit. Blackwell, sm_100a.
// Comes after fastmath.cuh. For any thread.
#include <cstdint>

namespace ptx {

__device__ inline uint64_t bits_of(float2 v) { return *reinterpret_cast<uint64_t*>(&v); }
__device__ inline float2 float2_of(uint64_t v) { return *reinterpret_cast<float2*>(&v); }

// Two floats in one instruction; each result is rounded once. fma2: a * b + c.
__device__ inline float2 fma2(float2 a, float2 b, float2 c) {
  uint64_t d;
  asm("fma.rn.f32x2 %0, %1, %2, %3;" : "=l"(d) : "l"(bits_of(a)), "l"(bits_of(b)), "l"(bits_of(c)));
  return float2_of(d);
}

__device__ inline float2 mul2(float2 a, float2 b) {
  uint64_t d;
  asm("mul.rn.f32x2 %0, %1, %2;" : "=l"(d) : "l"(bits_of(a)), "l"(bits_of(b)));
  return float2_of(d);
}

__device__ inline float2 add2(float2 a, float2 b) {
  uint64_t d;
  asm("add.rn.f32x2 %0, %1, %2;" : "=l"(d) : "l"(bits_of(a)), "l"(bits_of(b)));
  return float2_of(d);
}

// Largest of three in one instruction.
__device__ inline float max3(float a, float b, float c) {
  float d;
  asm("max.f32 %0, %1, %2, %3;" : "=f"(d) : "f"(a), "f"(b), "f"(c));
  return d;
}

// Largest of COUNT registers (bits of floats) and `start`. Two chains hide the latency.
template <int COUNT>
__device__ inline float row_max(const uint32_t (&r)[COUNT], float start) {
  float even = start, odd = start;
#pragma unroll
  for (int i = 0; i < COUNT; i += 4) {
    even = max3(even, __uint_as_float(r[i]), __uint_as_float(r[i + 1]));
    odd = max3(odd, __uint_as_float(r[i + 2]), __uint_as_float(r[i + 3]));
  }
  return fmaxf(even, odd);
}

// r *= factor, in place: what a rescaled accumulator row needs between tmem_ld and tmem_st.
template <int COUNT>
__device__ inline void scale_row(uint32_t (&r)[COUNT], float factor) {
#pragma unroll
  for (int i = 0; i < COUNT; i += 2) {
    const float2 v = mul2(make_float2(__uint_as_float(r[i]), __uint_as_float(r[i + 1])),
                          make_float2(factor, factor));
    r[i] = __float_as_uint(v.x), r[i + 1] = __float_as_uint(v.y);
  }
}

// 2^x by a cubic in the fused multiply-add pipe, for x <= 0 (a score less its maximum). 2^0 is 1;
// relative error at most 1.1e-4, where rounding to bf16 makes 2e-3. Below -126 it falls to 0, which
// it is for -127 and less and for -inf. Not a number gives 0.
__device__ inline float exp2_cubic(float x) {
  x = fmaxf(x, -127.0f);
  const float shifted = x + 12582912.0f;        // 1.5 * 2^23: round(x) in the low bits
  const float f = x - (shifted - 12582912.0f);  // -0.5 .. 0.5
  const float p = fmaf(fmaf(fmaf(0.05500894f, f, 0.24221099f), f, 0.69328293f), f, 1.0f);
  return __int_as_float(__float_as_int(p) + (__float_as_int(shifted) << 23));
}

}  // namespace ptx
