// Cluster launch control: a running cluster takes over the work of one that has not started yet, so
// that a grid of one cluster per tile behaves like a persistent kernel. Blackwell, sm_100a.
#include <cstdint>

namespace ptx {

// Asks for the next cluster of the grid. One thread of the cluster; the 16-byte answer comes to
// `response` (16-byte aligned) of this block and counts 16 bytes on `bar`, which must expect them.
__device__ inline void launch_cancel(uint32_t response, uint32_t bar) {
  asm volatile(
      "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128"
      " [%0], [%1];" ::"r"(response), "r"(bar)
      : "memory");
}

// The same, with the answer and the 16 bytes in every block of the cluster.
__device__ inline void launch_cancel_multicast(uint32_t response, uint32_t bar) {
  asm volatile(
      "clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes"
      ".multicast::cluster::all.b128 [%0], [%1];" ::"r"(response), "r"(bar)
      : "memory");
}

// Reads an answer. True: `block` is the first block index (x, y, z) of the cluster taken over, the
// caller adds its place in the cluster. False: the grid is used up, do not ask again. Afterwards
// fence_async_shared() and a barrier before `response` is asked for anew.
__device__ inline bool launch_answer(uint32_t response, uint3& block) {
  uint32_t taken;
  asm volatile(
      "{\n.reg .pred p;\n.reg .b128 answer;\n"
      "ld.shared.b128 answer, [%4];\n"
      "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 p, answer;\n"
      "selp.u32 %0, 1, 0, p;\n"
      "mov.u32 %1, 0;\nmov.u32 %2, 0;\nmov.u32 %3, 0;\n"
      "@p clusterlaunchcontrol.query_cancel.get_first_ctaid.v4.b32.b128 {%1, %2, %3, _}, answer;\n}"
      : "=r"(taken), "=r"(block.x), "=r"(block.y), "=r"(block.z)
      : "r"(response)
      : "memory");
  return taken != 0;
}

}  // namespace ptx
