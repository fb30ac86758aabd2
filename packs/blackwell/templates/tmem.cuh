// Tensor memory: 128 lanes x 512 columns of 32 bits per block (CTA). Blackwell, sm_100a. An address
// is (lane << 16) | column. CTAS is 1, or 2 for a pair of blocks; a kernel uses one value throughout.
#include <cstdint>

namespace ptx {

// Runs `op.cta_group::CTAS rest`; only for use in this pack's headers.
#define PTX_BY_CTAS(op, rest, ...)                                                       \
  if constexpr (CTAS == 1) {                                                            \
    asm volatile(op ".cta_group::1" rest ::__VA_ARGS__ : "memory");                      \
  } else {                                                                               \
    static_assert(CTAS == 2, "a group is one CTA or a pair");                           \
    asm volatile(op ".cta_group::2" rest ::__VA_ARGS__ : "memory");                      \
  }

__device__ inline uint32_t tmem_address(uint32_t base, uint32_t lane, uint32_t column) {
  return base + (lane << 16) + column;
}

// Whole warp, converged; with CTAS = 2 one warp in each CTA of the pair. `columns` is a power of
// two, 32 to 512. Blocks until so many are free. The base address lands in shared memory at `slot`
// (4-byte aligned): put tcgen05_fence_before(), a barrier of the CTA and tcgen05_fence_after()
// between this call and the first reader of `slot`.
template <int CTAS>
__device__ inline void tmem_alloc(uint32_t slot, uint32_t columns) {
  PTX_BY_CTAS("tcgen05.alloc", ".sync.aligned.shared::cta.b32 [%0], %1;", "r"(slot), "r"(columns))
}

// Whole warp, once every allocation of the CTA is made; no tmem_alloc may follow.
template <int CTAS>
__device__ inline void tmem_relinquish() {
  PTX_BY_CTAS("tcgen05.relinquish_alloc_permit", ".sync.aligned;")
}

// Whole warp (for a pair: one in each CTA), after every access has ended and a barrier has said so.
// A kernel must free all that it allocated before it exits.
template <int CTAS>
__device__ inline void tmem_dealloc(uint32_t address, uint32_t columns) {
  PTX_BY_CTAS("tcgen05.dealloc", ".sync.aligned.b32 %0, %1;", "r"(address), "r"(columns))
}

#define PTX_S10(t)                                                                       \
  "%" #t "0,%" #t "1,%" #t "2,%" #t "3,%" #t "4,%" #t "5,%" #t "6,%" #t "7,%" #t "8,%" #t "9,"
#define PTX_S8 "%0,%1,%2,%3,%4,%5,%6,%7"
#define PTX_S16 PTX_S10() "%10,%11,%12,%13,%14,%15"
#define PTX_S32 PTX_S10() PTX_S10(1) PTX_S10(2) "%30,%31"
#define PTX_S64 PTX_S10() PTX_S10(1) PTX_S10(2) PTX_S10(3) PTX_S10(4) PTX_S10(5) "%60,%61,%62,%63"
#define PTX_S128                                                                         \
  PTX_S10() PTX_S10(1) PTX_S10(2) PTX_S10(3) PTX_S10(4) PTX_S10(5) PTX_S10(6) PTX_S10(7) \
  PTX_S10(8) PTX_S10(9) PTX_S10(10) PTX_S10(11) "%120,%121,%122,%123,%124,%125,%126,%127"
#define PTX_R1(c, b) c(r[b])
#define PTX_R2(c, b) PTX_R1(c, b), PTX_R1(c, b + 1)
#define PTX_R4(c, b) PTX_R2(c, b), PTX_R2(c, b + 2)
#define PTX_R8(c, b) PTX_R4(c, b), PTX_R4(c, b + 4)
#define PTX_R16(c, b) PTX_R8(c, b), PTX_R8(c, b + 8)
#define PTX_R32(c, b) PTX_R16(c, b), PTX_R16(c, b + 16)
#define PTX_R64(c, b) PTX_R32(c, b), PTX_R32(c, b + 32)
#define PTX_R128(c, b) PTX_R64(c, b), PTX_R64(c, b + 64)

// tmem_ld(r, address), tmem_st(address, r): whole warp, converged, same address in all threads.
// Thread t of warp w (w = warp index modulo 4) moves lane 32 w + t, columns c to c + N - 1, where
// address = tmem_address(base, 32 * w, c): r[i] is column c + i. N = 1, 2, 4, 8, 16, 32, 64, 128.
// Both are asynchronous: tmem_wait_ld() before r is used or the columns are overwritten,
// tmem_wait_st() before anyone is told that the columns are written.
#define PTX_TMEM_LD_ST(n, slots)                                                         \
  __device__ inline void tmem_ld(uint32_t (&r)[n], uint32_t address) {          \
    asm volatile("tcgen05.ld.sync.aligned.32x32b.x" #n ".b32 {" slots "}, [%" #n "];"    \
                 : PTX_R##n("=r", 0)                                                     \
                 : "r"(address));                                                        \
  }                                                                                      \
  __device__ inline void tmem_st(uint32_t address, const uint32_t (&r)[n]) {    \
    asm volatile("tcgen05.st.sync.aligned.32x32b.x" #n ".b32 [%" #n "], {" slots "};" :: \
                     PTX_R##n("r", 0),                                                   \
                 "r"(address)                                                            \
                 : "memory");                                                            \
  }
PTX_TMEM_LD_ST(1, "%0")
PTX_TMEM_LD_ST(2, "%0,%1")
PTX_TMEM_LD_ST(4, "%0,%1,%2,%3")
PTX_TMEM_LD_ST(8, PTX_S8)
PTX_TMEM_LD_ST(16, PTX_S16)
PTX_TMEM_LD_ST(32, PTX_S32)
PTX_TMEM_LD_ST(64, PTX_S64)
PTX_TMEM_LD_ST(128, PTX_S128)

// Whole warp: all earlier tmem_ld of this thread have filled their registers.
__device__ inline void tmem_wait_ld() {
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
}

// Whole warp: all earlier tmem_st of this thread have reached tensor memory.
__device__ inline void tmem_wait_st() {
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
}

// Order tcgen05 work of this thread before (after) a barrier that it arrives at (has waited for).
// Neither waits for anything: completion comes from tmem_wait_* and from tcgen05_commit.
__device__ inline void tcgen05_fence_before() {
  asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
}

__device__ inline void tcgen05_fence_after() {
  asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
}

}  // namespace ptx
