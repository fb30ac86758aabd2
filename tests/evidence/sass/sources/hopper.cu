// One kernel per row of the family table for Hopper; compiled for its SASS, never run.
#include <cstdint>

__global__ void bf16_mma(float* o, uint64_t a, uint64_t b) {
  float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  asm volatile("wgmma.fence.sync.aligned;");
  asm volatile(
      "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3},%4,%5,1,1,1,0,0;"
      : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : "l"(a), "l"(b));
  asm volatile("wgmma.commit_group.sync.aligned;");
  asm volatile("wgmma.wait_group.sync.aligned 0;");
  o[threadIdx.x] = d0 + d1 + d2 + d3;
}

__global__ void fp8_mma(float* o, uint64_t a, uint64_t b) {
  float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  asm volatile("wgmma.fence.sync.aligned;");
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%0,%1,%2,%3},%4,%5,1,1,1;"
               : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : "l"(a), "l"(b));
  asm volatile("wgmma.commit_group.sync.aligned;");
  asm volatile("wgmma.wait_group.sync.aligned 0;");
  o[threadIdx.x] = d0 + d1 + d2 + d3;
}

__global__ void int8_mma(int* o, uint64_t a, uint64_t b) {
  int d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  asm volatile("wgmma.fence.sync.aligned;");
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%0,%1,%2,%3},%4,%5,1;"
               : "+r"(d0), "+r"(d1), "+r"(d2), "+r"(d3) : "l"(a), "l"(b));
  asm volatile("wgmma.commit_group.sync.aligned;");
  asm volatile("wgmma.wait_group.sync.aligned 0;");
  o[threadIdx.x] = d0 + d1 + d2 + d3;
}

__global__ void bare_commit() { asm volatile("wgmma.commit_group.sync.aligned;"); }

__global__ void tensor_load(uint64_t map, uint32_t s, uint32_t bar) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes "
      "[%0], [%1, {%3, %3}], [%2];" ::"r"(s), "l"(map), "r"(bar), "r"(0) : "memory");
}

__global__ void tensor_multicast(uint64_t map, uint32_t s, uint32_t bar) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%3, %3}], [%2], %4;" ::"r"(s), "l"(map), "r"(bar), "r"(0),
      "h"((uint16_t)3) : "memory");
}

__global__ void tensor_store(uint64_t map, uint32_t s) {
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %2}], [%1];" ::"l"(
                   map), "r"(s), "r"(0) : "memory");
}

__global__ void tensor_reduce(uint64_t map, uint32_t s) {
  asm volatile(
      "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%2, %2}], [%1];" ::"l"(
          map), "r"(s), "r"(0) : "memory");
}

__global__ void tensor_prefetch(uint64_t map) {
  asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global [%0, {%1, %1}];" ::"l"(map), "r"(0));
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}

__global__ void plain_bulk(void* g, uint32_t s, uint32_t bar, int bytes) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %3, [%2];" ::"r"(
          s), "l"(g), "r"(bar), "r"(bytes) : "memory");
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(g), "r"(s),
               "r"(bytes) : "memory");
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%0], [%1], %2;" ::"l"(
                   g), "r"(s), "r"(bytes) : "memory");
  asm volatile("cp.async.bulk.commit_group;");
  asm volatile("cp.async.bulk.wait_group 0;");
}

__global__ void older_mma(float* o, uint32_t a) {
  float d0 = 0, d1 = 0, d2 = 0, d3 = 0;
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%4,%4,%4},{%4,%4},"
      "{%0,%1,%2,%3};"
      : "+f"(d0), "+f"(d1), "+f"(d2), "+f"(d3) : "r"(a));
  o[threadIdx.x] = d0 + d1 + d2 + d3;
}

// Stands in the binary behind a condition that is never true when run.
__global__ void guarded_store(uint64_t map, uint32_t s, int never) {
  if (never == 12345)
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%2, %2}], [%1];" ::"l"(
                     map), "r"(s), "r"(0) : "memory");
}

// Only called like target instructions.
__global__ void HGMMA_64x256x16_F32_BF16(float* o) { o[threadIdx.x] = 1.0f; }
__global__ void UTMALDG_2D(float* o) { o[threadIdx.x] = 2.0f; }
