// One kernel per row of the family table for Blackwell; compiled for its SASS, never run.
#include <cstdint>

__global__ void tensor_mma(uint32_t d, uint64_t a, uint64_t b, uint32_t shape) {
  asm volatile(
      "{.reg .pred p; setp.ne.u32 p, %4, 0;"
      " tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, p;}" ::"r"(d), "l"(a), "l"(b),
      "r"(shape), "r"(1));
}

__global__ void tensor_mma_fp8(uint32_t d, uint64_t a, uint64_t b, uint32_t shape) {
  asm volatile(
      "{.reg .pred p; setp.ne.u32 p, %4, 0;"
      " tcgen05.mma.cta_group::1.kind::f8f6f4 [%0], %1, %2, %3, p;}" ::"r"(d), "l"(a), "l"(b),
      "r"(shape), "r"(1));
}

__global__ void bare_alloc(uint32_t* o) {
  __shared__ uint32_t place;
  uint32_t address = (uint32_t)__cvta_generic_to_shared(&place);
  asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" ::"r"(address));
  asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;");
  o[threadIdx.x] = place;
}

__global__ void bare_commit(uint64_t* bar) {
  uint32_t address = (uint32_t)__cvta_generic_to_shared(bar);
  asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(
      address) : "memory");
}

__global__ void tensor_copy(uint32_t d, uint64_t descriptor) {
  asm volatile("tcgen05.cp.cta_group::1.128x256b [%0], %1;" ::"r"(d), "l"(descriptor) : "memory");
}

__global__ void tensor_load(uint32_t* o, uint32_t d) {
  uint32_t value;
  asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(value) : "r"(d));
  asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
  o[threadIdx.x] = value;
}

__global__ void tensor_store(uint32_t d, uint32_t value) {
  asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" ::"r"(d), "r"(value) : "memory");
  asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
}

__global__ void tensor_shift(uint32_t d) {
  asm volatile("tcgen05.shift.cta_group::1.down [%0];" ::"r"(d) : "memory");
}

// TMA belongs to the Hopper families only, in the rule that the board follows.
__global__ void bulk_tensor_load(uint64_t map, uint32_t s, uint32_t bar) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %3}], [%2];" ::"r"(s), "l"(map), "r"(bar), "r"(0) : "memory");
}

__global__ void UTCHMMA_decoy(float* o) { o[threadIdx.x] = 1.0f; }
