// mbarrier: an 8-byte object in shared memory, 8-byte aligned, that counts arrivals and bytes. All
// functions are for one thread; `bar` is a 32-bit shared address.
#include <cstdint>

namespace ptx {

// A phase ends when `arrivals` arrivals (1..2^20-1) were made and all expected bytes came in; the
// count then starts anew by itself. One thread, once; then fence_mbarrier_init and a barrier.
__device__ inline void mbarrier_init(uint32_t bar, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(arrivals) : "memory");
}

// Ends the object's life so that its 8 bytes may serve another purpose. Nobody may be waiting.
__device__ inline void mbarrier_invalidate(uint32_t bar) {
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(bar) : "memory");
}

// One arrival (release in the block): what this thread did before is seen by who waits for the
// phase.
__device__ inline void mbarrier_arrive(uint32_t bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}

// One arrival that also says how many bytes the copies of this phase will bring. Call it before (or
// right after) issuing the copies; `bytes` is the sum of full boxes, also where a box hangs over
// the tensor's edge: the missing part is filled and counted.
__device__ inline void mbarrier_arrive_expect(uint32_t bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes)
               : "memory");
}

// Adds expected bytes without an arrival.
__device__ inline void mbarrier_expect(uint32_t bar, uint32_t bytes) {
  asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(bytes)
               : "memory");
}

// One arrival at the barrier at the same place in block `rank` of the cluster. Right for "I have
// read this buffer" when wgmma_wait or a barrier has already completed the reads.
__device__ inline void mbarrier_arrive_remote(uint32_t bar, uint32_t rank) {
  asm volatile(
      "{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(bar),
      "r"(rank)
      : "memory");
}

// The same with release for the whole cluster: use it after store_remote, so that the waiter
// (mbarrier_wait_cluster) sees the stored data. It costs a memory barrier.
__device__ inline void mbarrier_arrive_remote_release(uint32_t bar, uint32_t rank) {
  asm volatile(
      "{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [remote];\n}" ::"r"(bar),
      "r"(rank)
      : "memory");
}

// Whether the phase with this parity (0 or 1) has ended; does not wait.
__device__ inline bool mbarrier_test(uint32_t bar, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{\n.reg .pred p;\n"
      "mbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(done)
      : "r"(bar), "r"(parity)
      : "memory");
  return done != 0;
}

// The same, but may sleep up to a time limit of the hardware before it says no.
__device__ inline bool mbarrier_try(uint32_t bar, uint32_t parity) {
  uint32_t done;
  asm volatile(
      "{\n.reg .pred p;\n"
      "mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(done)
      : "r"(bar), "r"(parity)
      : "memory");
  return done != 0;
}

// Waits for the end of the phase with this parity: 0 for the first phase, then 1, 0, ... On a fresh
// barrier, parity 1 returns at once (the phase before the first counts as ended): producers that
// wait for "empty" start with parity 1. Any number of threads may wait; each that reads the data
// must.
__device__ inline void mbarrier_wait(uint32_t bar, uint32_t parity) {
  while (!mbarrier_try(bar, parity)) {
  }
}

// The same with acquire for the whole cluster: pairs with mbarrier_arrive_remote_release.
__device__ inline void mbarrier_wait_cluster(uint32_t bar, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n}" ::"r"(bar),
      "r"(parity)
      : "memory");
}

// Position in a ring of STAGES buffers. Consumer: wait(full + 8 * stage, phase). Producer:
// wait(empty + 8 * stage, phase ^ 1). Both call advance() once per buffer, also across tiles of a
// persistent kernel: never set it back.
template <int STAGES>
struct Ring {
  int stage = 0;
  uint32_t phase = 0;
  __device__ void advance() {
    if (++stage == STAGES) {
      stage = 0;
      phase ^= 1;
    }
  }
};

}  // namespace ptx
