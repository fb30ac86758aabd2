// From tensor memory to bf16, shared memory and global memory. Blackwell, sm_100a. After tmem_ld a
// thread holds part of one row of the accumulator: no shuffles, no fragments.
#include <cstdint>

namespace ptx {

// Two floats, rounded to nearest, in one register; `low` goes to the lower address.
__device__ inline uint32_t pack_bf16(float low, float high) {
  uint32_t pair;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
  return pair;
}

// Two e4m3 in the low 16 bits, saturated to +-448.
__device__ inline uint32_t pack_e4m3(float low, float high) {
  uint16_t pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(high), "f"(low));
  return pair;
}

// COUNT accumulators (bits of floats, as tmem_ld gives them) to COUNT / 2 registers of bf16: what
// tmem_st needs to make the A operand of mma_ts.
template <int COUNT>
__device__ inline void pack_row(uint32_t (&packed)[COUNT / 2], const uint32_t (&r)[COUNT]) {
#pragma unroll
  for (int i = 0; i < COUNT / 2; ++i)
    packed[i] = pack_bf16(__uint_as_float(r[2 * i]), __uint_as_float(r[2 * i + 1]));
}

// Where byte `offset` of a tile lies under the TMA's swizzle (SPAN_BYTES 128, 64 or 32, or 0 for
// none): bits 4-6 are XORed with bits 7-9. The tile starts at a multiple of 8 * SPAN_BYTES.
template <int SPAN_BYTES>
__device__ inline uint32_t swizzle(uint32_t offset) {
  static_assert(SPAN_BYTES == 0 || SPAN_BYTES == 32 || SPAN_BYTES == 64 || SPAN_BYTES == 128, "");
  return SPAN_BYTES == 0 ? offset : offset ^ ((offset >> 3) & (SPAN_BYTES - 16));
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

// COUNT accumulators of row `row`, as bf16, to columns column .. column + COUNT - 1 (COUNT and
// column multiples of 8, at most column 63) of rows of 128 bytes at `buffer` (1024-byte aligned) in
// the 128-byte swizzle: ready for tma_store with box {64, rows}, or as a K-major tile. Each thread
// its own row, free of bank conflicts; then fence_async_shared() and a barrier of the writers.
template <int COUNT>
__device__ inline void row_to_shared(uint32_t buffer, int row, int column,
                                     const uint32_t (&r)[COUNT]) {
  uint32_t p[COUNT / 2];
  pack_row(p, r);
#pragma unroll
  for (int i = 0; i < COUNT / 8; ++i)
    store_shared_128(buffer + swizzle<128>(row * 128 + 2 * column + 16 * i),
                     make_uint4(p[4 * i], p[4 * i + 1], p[4 * i + 2], p[4 * i + 3]));
}

// The simplest way out: COUNT bf16 to global memory at `out` (16-byte aligned). Slower than
// row_to_shared + tma_store: a warp writes 32 rows at once.
template <int COUNT>
__device__ inline void row_to_global(void* out, const uint32_t (&r)[COUNT]) {
  uint32_t p[COUNT / 2];
  pack_row(p, r);
#pragma unroll
  for (int i = 0; i < COUNT / 8; ++i)
    static_cast<uint4*>(out)[i] = make_uint4(p[4 * i], p[4 * i + 1], p[4 * i + 2], p[4 * i + 3]);
}

}  // namespace ptx
