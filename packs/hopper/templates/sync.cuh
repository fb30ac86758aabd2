// Synchronisation inside a warp, a block and a cluster. Copy what you need from these headers into
// your source; they cannot be included. Shared memory is named by its 32-bit address everywhere:
// smem_address() makes one.
#include <cstdint>

namespace ptx {

// 32-bit address of an object in this block's shared memory. Any thread.
__device__ inline uint32_t smem_address(const void* object) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(object));
}

// First address at or after `address` that is a multiple of `alignment` (a power of two). Dynamic
// shared memory is promised 16 bytes only: ask for 1024 bytes more and align by hand.
__device__ inline uint32_t align_up(uint32_t address, uint32_t alignment) {
  return (address + alignment - 1) & ~(alignment - 1);
}

// True in exactly one lane. Whole warp, converged. Which lane is not promised, but it is the same
// one each time for the same mask.
__device__ inline bool elect_one() {
  uint32_t elected;
  asm volatile(
      "{\n.reg .pred p;\n"
      "elect.sync _|p, 0xffffffff;\n"
      "selp.u32 %0, 1, 0, p;\n}"
      : "=r"(elected));
  return elected != 0;
}

// Index of the caller's warpgroup (128 threads) in a 1-D block, the same value in the whole warp:
// the compiler then knows that a branch on it does not diverge. Whole warp, converged.
__device__ inline int warpgroup_index() { return __shfl_sync(0xffffffff, threadIdx.x / 128, 0); }

// Named barriers: ids 1..15 (0 is __syncthreads), `threads` a multiple of 32 and equal in all calls
// of one round. Called by whole warps. sync = arrive and wait; arrive = count me and go on. For "A
// waits for B": A calls sync, B calls arrive, threads = |A| + |B|.
__device__ inline void named_barrier_sync(uint32_t id, uint32_t threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

__device__ inline void named_barrier_arrive(uint32_t id, uint32_t threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// Registers a thread may use from here on. All warps of the warpgroup execute it, in the same
// place. REGISTERS: 24..256, a multiple of 8. dec gives registers back and does not wait; inc waits
// until the block's pool has them. The kernel must have been compiled with a fixed count
// (__launch_bounds__ or maxnreg), and the sum over all warps must stay within what the launch got.
template <int REGISTERS>
__device__ inline void setmaxnreg_inc() {
  static_assert(REGISTERS >= 24 && REGISTERS <= 256 && REGISTERS % 8 == 0, "24..256, step 8");
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

template <int REGISTERS>
__device__ inline void setmaxnreg_dec() {
  static_assert(REGISTERS >= 24 && REGISTERS <= 256 && REGISTERS % 8 == 0, "24..256, step 8");
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(REGISTERS));
}

// Rank of this block in its cluster and number of blocks of the cluster. Any thread.
__device__ inline uint32_t cluster_rank() {
  uint32_t rank;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

__device__ inline uint32_t cluster_size() {
  uint32_t size;
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  return size;
}

// Barrier of all threads of all blocks of the cluster. arrive (release) then wait (acquire); work
// that touches no other block may stand between. Every thread calls both, converged warps. Needed
// after mbarrier_init before a peer uses the barrier, and before a block ends whose shared memory a
// peer may still write or signal.
__device__ inline void cluster_arrive() {
  asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}

__device__ inline void cluster_wait() {
  asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__device__ inline void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}

// Address of the same shared-memory place in block `rank` of the cluster, for the wrappers that
// take a shared::cluster address. An address that was not mapped means the caller's own block.
__device__ inline uint32_t map_to_block(uint32_t address, uint32_t rank) {
  uint32_t mapped;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
  return mapped;
}

// Plain access to a peer's shared memory (address from map_to_block). Ordering by cluster_sync or
// by an mbarrier with cluster scope. 4-byte alignment.
__device__ inline void store_remote(uint32_t mapped, uint32_t value) {
  asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(mapped), "r"(value) : "memory");
}

__device__ inline uint32_t load_remote(uint32_t mapped) {
  uint32_t value;
  asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(mapped) : "memory");
  return value;
}

// Makes this thread's ordinary writes to shared memory visible to the asynchronous proxy (TMA
// stores, bulk copies, wgmma operands). Every thread that wrote calls it, then a barrier, then one
// thread issues.
__device__ inline void fence_async_shared() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// The same for every state space: ordinary writes to global memory before a TMA or bulk load of
// them.
__device__ inline void fence_async() { asm volatile("fence.proxy.async;" ::: "memory"); }

// Makes mbarrier_init visible to the cluster and to the asynchronous proxy. By the thread that
// initialised; afterwards __syncthreads (no cluster) or cluster_sync.
__device__ inline void fence_mbarrier_init() {
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

}  // namespace ptx
