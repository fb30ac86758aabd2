// Compiled for sm_100a and looked at, never run by us: one kernel per wrapper of tcgen05.cuh.
#include "../templates/tmem.cuh"

#include "../templates/tcgen05.cuh"

using namespace ptx;

constexpr uint32_t BF16 = mma_idesc(128, 256, Elem::kBF16, Elem::kBF16);
constexpr uint32_t BF16_PAIR = mma_idesc(256, 256, Elem::kBF16, Elem::kBF16);
constexpr uint32_t TF32 = mma_idesc(128, 256, Elem::kTF32, Elem::kTF32);
constexpr uint32_t FP8 = mma_idesc(128, 256, Elem::kE4M3, Elem::kE5M2);

extern "C" {
__global__ void probe_mma_ss_f16(uint32_t d, uint32_t s, bool more) {
  mma_ss<MmaKind::kF16, 1>(d, tile_desc_k_major(s), tile_desc_mn_major(s, 8192), BF16, more);
}
__global__ void probe_mma_ss_f16_pair(uint32_t d, uint32_t s, bool more) {
  mma_ss<MmaKind::kF16, 2>(d, tile_desc_k_major(s), tile_desc_k_major(s), BF16_PAIR, more);
}
__global__ void probe_mma_ss_tf32(uint32_t d, uint32_t s) {
  mma_ss<MmaKind::kTF32, 1>(d, tile_desc_k_major(s), tile_desc_k_major(s), TF32, true);
}
__global__ void probe_mma_ss_f8f6f4(uint32_t d, uint32_t s) {
  mma_ss<MmaKind::kF8F6F4, 1>(d, tile_desc_k_major(s), tile_desc_k_major(s), FP8, true);
}
__global__ void probe_mma_ss_f8f6f4_pair(uint32_t d, uint32_t s) {
  mma_ss<MmaKind::kF8F6F4, 2>(d, tile_desc_k_major(s), tile_desc_k_major(s), FP8, true);
}
__global__ void probe_mma_ts_f16(uint32_t d, uint32_t s, bool more) {
  mma_ts<MmaKind::kF16, 1>(d, d + 256, tile_desc_k_major(s), BF16, more);
}
__global__ void probe_mma_ts_f16_pair(uint32_t d, uint32_t s) {
  mma_ts<MmaKind::kF16, 2>(d, d + 256, tile_desc_k_major(s), BF16_PAIR, true);
}
__global__ void probe_mma_ss_row(uint32_t d, uint32_t s, bool more) {
  mma_ss_row<MmaKind::kF16, 1>(d, tile_desc_k_major(s), tile_desc_k_major(s), BF16, more);
}
__global__ void probe_tcgen05_commit(uint32_t bar) { tcgen05_commit<1>(bar); }
__global__ void probe_tcgen05_commit_pair(uint32_t bar) { tcgen05_commit<2>(bar); }
__global__ void probe_tcgen05_commit_multicast(uint32_t bar) {
  tcgen05_commit_multicast<1>(bar, 3);
}
__global__ void probe_tcgen05_commit_multicast_pair(uint32_t bar) {
  tcgen05_commit_multicast<2>(bar, 3);
}
__global__ void probe_tmem_cp_128x256b(uint32_t a, uint32_t s) {
  tmem_cp_128x256b<1>(a, tile_desc(s, 128, 256, TileSwizzle::kNone));
}
__global__ void probe_tmem_cp_128x128b(uint32_t a, uint32_t s) {
  tmem_cp_128x128b<2>(a, tile_desc(s, 128, 256, TileSwizzle::kNone));
}
__global__ void probe_tmem_cp_32x128b_x4(uint32_t a, uint32_t s) {
  tmem_cp_32x128b_x4<1>(a, tile_desc(s, 16, 128, TileSwizzle::kNone));
}
}
