// Fifth-generation tensor cores: descriptors, products, copies, completion. Blackwell, sm_100a.
// Comes after tmem.cuh. Everything but tile_desc* and mma_idesc is for one thread.
#include <cstdint>

namespace ptx {

// How a tile lies in shared memory. It must be the swizzle of the TMA load that filled the tile.
enum class TileSwizzle : uint32_t { kNone = 0, k128BAtom32B = 1, k128B = 2, k64B = 4, k32B = 6 };

// Shared-memory descriptor; all three in bytes, multiples of 16, below 256 KiB. Tiles start at a
// multiple of 1024 (128B), 512 (64B) or 256 (32B swizzle): the base-offset field stays 0.
__device__ inline uint64_t tile_desc(uint32_t address, uint32_t lbo, uint32_t sbo,
                                              TileSwizzle swizzle) {
  return uint64_t((address & 0x3FFFF) >> 4) | uint64_t((lbo & 0x3FFFF) >> 4) << 16 |
         uint64_t((sbo & 0x3FFFF) >> 4) << 32 | uint64_t(1) << 46 |
         uint64_t(swizzle) << 61;
}

// K-major tile in rows of 128 swizzled bytes (box of 64 bf16 x rows): 8 rows are 1024 bytes.
__device__ inline uint64_t tile_desc_k_major(uint32_t address) {
  return tile_desc(address, 16, 1024, TileSwizzle::k128B);
}

// MN-major tile: columns of K, each 128 swizzled bytes of 64 bf16 along M or N; 8 of them are 1024
// bytes. `chunk_bytes` is the distance to the next 64 along M or N (rows of the box * 128).
__device__ inline uint64_t tile_desc_mn_major(uint32_t address, uint32_t chunk_bytes) {
  return tile_desc(address, chunk_bytes, 1024, TileSwizzle::k128B);
}

// The same tile, further on by `bytes`. One MMA takes 32 bytes of K: in a K-major tile the next one
// is 32 bytes on; in an MN-major tile of bf16 it is 16 columns, 2048 bytes, on.
__device__ inline uint64_t tile_desc_advance(uint64_t desc, uint32_t bytes) {
  return desc + (bytes >> 4);
}

enum class MmaKind { kF16, kTF32, kF8F6F4 };  // kF16 is f16 and bf16
enum class Acc : uint32_t { kF16 = 0, kF32 = 1 };
// Numbers of the element types; which set holds depends on the kind.
enum class Elem : uint32_t {
  kF16 = 0, kBF16 = 1,                                // MmaKind::kF16
  kTF32 = 2,                                          // MmaKind::kTF32
  kE4M3 = 0, kE5M2 = 1, kE2M3 = 3, kE3M2 = 4, kE2M1 = 5  // MmaKind::kF8F6F4
};

// Instruction descriptor. m and n are those of the whole instruction: with a pair, of both CTAs.
// m: 64 or 128 (one CTA), 128 or 256 (pair). n: up to 256, a multiple of 8 (m = 64), 16 (m = 128,
// one CTA) or 32 (pair). *_mn_major: that operand's tile is MN-major ("transposed").
__host__ __device__ constexpr uint32_t mma_idesc(int m, int n, Elem a, Elem b, Acc d = Acc::kF32,
                                                 bool a_mn_major = false,
                                                 bool b_mn_major = false) {
  return uint32_t(d) << 4 | uint32_t(a) << 7 | uint32_t(b) << 10 | uint32_t(a_mn_major) << 15 |
         uint32_t(b_mn_major) << 16 | uint32_t(n >> 3) << 17 | uint32_t(m >> 4) << 24;
}

#define PTX_MMA(kind, a_slot, a_value)                                                   \
  PTX_BY_CTAS("{\n.reg .pred p;\nsetp.ne.b32 p, %4, 0;\ntcgen05.mma",                    \
              ".kind::" kind " [%0], " a_slot ", %2, %3, p;\n}", "r"(d), a_value,        \
              "l"(b_desc), "r"(idesc), "r"(uint32_t(accumulate)))
#define PTX_MMA_OF_KIND(a_slot, a_value)                                                 \
  if constexpr (KIND == MmaKind::kF16) {                                                \
    PTX_MMA("f16", a_slot, a_value)                                                      \
  } else if constexpr (KIND == MmaKind::kTF32) {                                        \
    PTX_MMA("tf32", a_slot, a_value)                                                     \
  } else {                                                                               \
    PTX_MMA("f8f6f4", a_slot, a_value)                                                   \
  }

// D = A B + D, or A B if not `accumulate`; A and B in shared memory. One thread of the CTA, for a
// pair one thread of its even CTA. Asynchronous: d, and the tiles, are free after tcgen05_commit.
template <MmaKind KIND, int CTAS>
__device__ inline void mma_ss(uint32_t d, uint64_t a_desc, uint64_t b_desc, uint32_t idesc,
                                       bool accumulate) {
  PTX_MMA_OF_KIND("%1", "l"(a_desc))
}

// The same with A in tensor memory: lane = row, 32 bits of K a column (two bf16).
template <MmaKind KIND, int CTAS>
__device__ inline void mma_ts(uint32_t d, uint32_t a, uint64_t b_desc, uint32_t idesc,
                                       bool accumulate) {
  PTX_MMA_OF_KIND("[%1]", "r"(a))
}

// One tile row of K, 128 bytes (64 bf16, 32 tf32, 128 fp8), both tiles K-major as tile_desc_k_major
// has them: four products. `accumulate` is about the first; the rest add to it.
template <MmaKind KIND, int CTAS>
__device__ inline void mma_ss_row(uint32_t d, uint64_t a_desc, uint64_t b_desc, uint32_t idesc,
                                  bool accumulate) {
#pragma unroll
  for (int k = 0; k < 4; ++k)
    mma_ss<KIND, CTAS>(d, tile_desc_advance(a_desc, 32 * k), tile_desc_advance(b_desc, 32 * k),
                       idesc, accumulate || k > 0);
}

// One arrival at the mbarrier `bar` once all earlier mma_*, tmem_cp_* of this thread are complete.
// Implies tcgen05_fence_before(). The waiter calls tcgen05_fence_after() before it touches d.
template <int CTAS>
__device__ inline void tcgen05_commit(uint32_t bar) {
  PTX_BY_CTAS("tcgen05.commit", ".mbarrier::arrive::one.shared::cluster.b64 [%0];", "r"(bar))
}

// The same arrival at this offset in every CTA of the cluster whose bit in `ctas` is set.
template <int CTAS>
__device__ inline void tcgen05_commit_multicast(uint32_t bar, uint16_t ctas) {
  PTX_BY_CTAS("tcgen05.commit",
              ".mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%0], %1;", "r"(bar),
              "h"(ctas))
}

// Shared memory to tensor memory, one thread, asynchronous (tcgen05_commit; mma_* of the same
// thread come after it by themselves). 128 lanes x 256 or 128 bits; 32 lanes x 128 bits copied to
// the four quarters of the lanes (scale factors).
template <int CTAS>
__device__ inline void tmem_cp_128x256b(uint32_t address, uint64_t desc) {
  PTX_BY_CTAS("tcgen05.cp", ".128x256b [%0], %1;", "r"(address), "l"(desc))
}

template <int CTAS>
__device__ inline void tmem_cp_128x128b(uint32_t address, uint64_t desc) {
  PTX_BY_CTAS("tcgen05.cp", ".128x128b [%0], %1;", "r"(address), "l"(desc))
}

template <int CTAS>
__device__ inline void tmem_cp_32x128b_x4(uint32_t address, uint64_t desc) {
  PTX_BY_CTAS("tcgen05.cp", ".32x128b.warpx4 [%0], %1;", "r"(address), "l"(desc))
}

}  // namespace ptx
