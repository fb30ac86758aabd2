// From accumulators to bf16, shared memory and global memory. `thread` is 0..127 in the warpgroup.
#include <cstdint>

namespace ptx {

// Two floats, rounded to nearest, in one register; `low` goes to the lower address. Any thread.
__device__ inline uint32_t pack_bf16(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

__device__ inline uint32_t pack_f16(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// Two e4m3 in the low 16 bits, saturated to +-448.
__device__ inline uint32_t pack_e4m3(float low, float high) {
  uint16_t pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
  return pair;
}

__device__ inline float low_bf16(uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ inline float high_bf16(uint32_t pair) { return __uint_as_float(pair & 0xffff0000u); }

// Accumulator of a 64 x N tile -> A operand of the next product with K = N: step k of it takes
// a + 4 * k in wgmma_rs. No shuffle is needed.
template <int COUNT>
__device__ inline void acc_to_a(uint32_t (&a)[COUNT / 2], const float (&d)[COUNT]) {
#pragma unroll
  for (int i = 0; i < COUNT / 2; ++i) a[i] = pack_bf16(d[2 * i], d[2 * i + 1]);
}

// Where byte `offset` of a tile lies under the TMA's swizzle (SPAN_BYTES 128, 64 or 32, or 0 for
// none): bits 4-6 are XORed with bits 7-9. The tile starts at a multiple of 8 * SPAN_BYTES.
template <int SPAN_BYTES>
__device__ inline uint32_t swizzle(uint32_t offset) {
  static_assert(SPAN_BYTES == 0 || SPAN_BYTES == 32 || SPAN_BYTES == 64 || SPAN_BYTES == 128,
                "0/32/64/128");
  return SPAN_BYTES == 0 ? offset : offset ^ ((offset >> 3) & (SPAN_BYTES - 16));
}

// Four 8x8 matrices of 16-bit values between registers and shared memory. Whole warp, converged.
// Lane l names the 16-byte row l % 8 of matrix l / 8; register m holds, in lane l, the values (row
// l / 4, columns 2 * (l % 4) and the next) of matrix m. With _trans: of the matrix's transpose.
__device__ inline void stmatrix_x4(uint32_t row, uint32_t r0, uint32_t r1, uint32_t r2,
                                   uint32_t r3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row),
               "r"(r0), "r"(r1), "r"(r2), "r"(r3)
               : "memory");
}

__device__ inline void stmatrix_x4_trans(uint32_t row, uint32_t r0, uint32_t r1, uint32_t r2,
                                         uint32_t r3) {
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row),
               "r"(r0), "r"(r1), "r"(r2), "r"(r3)
               : "memory");
}

__device__ inline void ldmatrix_x4(uint32_t (&r)[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row)
               : "memory");
}

__device__ inline void ldmatrix_x4_trans(uint32_t (&r)[4], uint32_t row) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row)
               : "memory");
}

// 16 bytes, 16-byte aligned. One thread.
__device__ inline void store_shared_128(uint32_t address, uint4 value) {
  asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(value.x),
               "r"(value.y), "r"(value.z), "r"(value.w)
               : "memory");
}

__device__ inline uint4 load_shared_128(uint32_t address) {
  uint4 value;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "r"(address)
               : "memory");
  return value;
}

// Columns 64 * piece .. + 63 of a 64 x N accumulator, as bf16, into 64 rows of 128 bytes at
// `buffer` (1024-byte aligned, 8 KiB) in the 128-byte swizzle: ready for tma_store with box {64,
// 64}, or as a K-major operand. All 128 threads; then fence_async_shared and a barrier of the
// warpgroup.
template <int COUNT>
__device__ inline void acc_to_shared(uint32_t buffer, const float (&d)[COUNT], int piece,
                                     int thread) {
  const int lane = thread % 32, row = 16 * (thread / 32) + lane % 16;
#pragma unroll
  for (int j = 0; j < 8; j += 2) {
    const int i = 4 * (8 * piece + j);
    stmatrix_x4(buffer + swizzle<128>(row * 128 + 16 * (j + lane / 16)), pack_bf16(d[i], d[i + 1]),
                pack_bf16(d[i + 2], d[i + 3]), pack_bf16(d[i + 4], d[i + 5]),
                pack_bf16(d[i + 6], d[i + 7]));
  }
}

// The same piece transposed: 64 rows (the tile's columns) of 64 values (the tile's rows), same
// swizzle.
template <int COUNT>
__device__ inline void acc_to_shared_trans(uint32_t buffer, const float (&d)[COUNT], int piece,
                                           int thread) {
  const int lane = thread % 32, warp = thread / 32, matrix = lane / 8;
#pragma unroll
  for (int j = 0; j < 8; j += 2) {
    const int i = 4 * (8 * piece + j), row = 8 * (j + matrix / 2) + lane % 8;
    stmatrix_x4_trans(buffer + swizzle<128>(row * 128 + 16 * (2 * warp + matrix % 2)),
                      pack_bf16(d[i], d[i + 1]), pack_bf16(d[i + 2], d[i + 3]),
                      pack_bf16(d[i + 4], d[i + 5]), pack_bf16(d[i + 6], d[i + 7]));
  }
}

// The simplest way out: straight to row-major bf16 in global memory; `out` is the tile's corner
// (4-byte aligned, ld even), rows the valid rows of the 64. Slower than acc_to_shared + tma_store;
// good to start.
template <int COUNT>
__device__ inline void acc_to_global(void* out, int ld, const float (&d)[COUNT], int rows,
                                     int thread) {
  const int row = 16 * (thread / 32) + (thread % 32) / 4, column = 2 * (thread % 4);
#pragma unroll
  for (int i = 0; i < COUNT; i += 2) {
    const int r = row + 8 * ((i >> 1) & 1), c = column + 8 * (i / 4);
    if (r < rows) static_cast<uint32_t*>(out)[(size_t(r) * ld + c) / 2] = pack_bf16(d[i], d[i + 1]);
  }
}

}  // namespace ptx
