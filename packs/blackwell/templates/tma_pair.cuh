// TMA loads for a pair of blocks (tcgen05 with CTAS = 2). Blackwell, sm_100a. Comes after tma.cuh.
#include <cstdint>
#include <cuda.h>

namespace ptx {

// Rank of the even block of this block's pair: the one that issues the products and owns the
// barriers of both. `rank` is cluster_rank().
__device__ inline uint32_t pair_leader(uint32_t rank) { return rank & ~1u; }

// As tma_load into this block's own dst, but the bytes may be counted on the barrier of either block
// of the pair: `bar` is map_to_block(bar, pair_leader(rank)). Both blocks load their halves so; the
// even block alone expects the bytes of both. One thread.
#define PTX_LOAD_PAIR(RANK_NAME, LIST, ...) \
  asm volatile("cp.async.bulk.tensor." RANK_NAME \
               ".shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2" \
               " [%0], [%1, " LIST "], [%2];" \
               ::"r"(dst), "l"(map), "r"(bar), "n"(0), __VA_ARGS__ : "memory")
template <int RANK>
__device__ inline void tma_load_pair(uint32_t dst, const CUtensorMap* map, uint32_t bar,
                                     const int (&at)[RANK]) {
  PTX_BY_RANK(PTX_LOAD_PAIR)
}

// The same to dst in every block of `blocks`; the bytes of each receiver are counted on the barrier
// of its own pair's even block.
#define PTX_MULTICAST_PAIR(RANK_NAME, LIST, ...) \
  asm volatile("cp.async.bulk.tensor." RANK_NAME \
               ".shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster" \
               ".cta_group::2 [%0], [%1, " LIST "], [%2], %3;" \
               ::"r"(dst), "l"(map), "r"(bar), "h"(blocks), __VA_ARGS__ : "memory")
template <int RANK>
__device__ inline void tma_load_pair_multicast(uint32_t dst, const CUtensorMap* map, uint32_t bar,
                                               const int (&at)[RANK], uint16_t blocks) {
  PTX_BY_RANK(PTX_MULTICAST_PAIR)
}

}  // namespace ptx
