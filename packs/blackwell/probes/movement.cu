// Compiled for sm_100a and looked at, never run by us: one kernel per wrapper of tma_pair.cuh,
// launch_control.cuh, epilogue.cuh and softmax.cuh.
#include "../../hopper/templates/sync.cuh"

#include "../../hopper/templates/fastmath.cuh"
#include "../../hopper/templates/tma.cuh"

#include "../templates/epilogue.cuh"
#include "../templates/launch_control.cuh"
#include "../templates/softmax.cuh"
#include "../templates/tma_pair.cuh"

using namespace ptx;

extern "C" {
__global__ void probe_tma_load_pair(const __grid_constant__ CUtensorMap map, uint32_t dst, int x) {
  const uint32_t bar = map_to_block(dst, pair_leader(cluster_rank()));
  tma_load_pair(dst, &map, bar, {x});
  tma_load_pair(dst, &map, bar, {x, x});
  tma_load_pair(dst, &map, bar, {x, x, x});
  tma_load_pair(dst, &map, bar, {x, x, x, x});
  tma_load_pair(dst, &map, bar, {x, x, x, x, x});
}
__global__ void probe_tma_load_pair_multicast(const __grid_constant__ CUtensorMap map, uint32_t dst,
                                              int x) {
  const uint32_t bar = map_to_block(dst, pair_leader(cluster_rank()));
  tma_load_pair_multicast(dst, &map, bar, {x, x}, 5);
  tma_load_pair_multicast(dst, &map, bar, {x, x, x}, 5);
}
__global__ void probe_launch_cancel(uint32_t response, uint32_t bar) {
  launch_cancel(response, bar);
}
__global__ void probe_launch_cancel_multicast(uint32_t response, uint32_t bar) {
  launch_cancel_multicast(response, bar);
}
__global__ void probe_launch_answer(uint32_t response, uint3* out) {
  uint3 block;
  if (launch_answer(response, block)) *out = block;
}
__global__ void probe_row_to_shared(uint32_t buffer, const uint32_t* in) {
  uint32_t r[32];
  for (int i = 0; i < 32; ++i) r[i] = in[i];
  row_to_shared(buffer, threadIdx.x, 32, r);
}
__global__ void probe_row_to_global(uint4* out, const uint32_t* in) {
  uint32_t r[32];
  for (int i = 0; i < 32; ++i) r[i] = in[i];
  row_to_global(out, r);
}
__global__ void probe_shared_128(uint32_t a) { store_shared_128(a + 16, load_shared_128(a)); }
__global__ void probe_pack_e4m3(const float2* in, uint32_t* out) {
  *out = pack_e4m3(in->x, in->y);
}
__global__ void probe_fma2(float2* v) { v[3] = fma2(v[0], v[1], v[2]); }
__global__ void probe_mul2(float2* v) { v[3] = mul2(v[0], v[1]); }
__global__ void probe_add2(float2* v) { v[3] = add2(v[0], v[1]); }
__global__ void probe_max3(float* v) { v[3] = max3(v[0], v[1], v[2]); }
__global__ void probe_row_max(const uint32_t* in, float* out) {
  uint32_t r[8];
  for (int i = 0; i < 8; ++i) r[i] = in[i];
  *out = row_max(r, *out);
}
__global__ void probe_scale_row(uint32_t* in, float factor) {
  uint32_t r[8];
  for (int i = 0; i < 8; ++i) r[i] = in[i];
  scale_row(r, factor);
  for (int i = 0; i < 8; ++i) in[i] = r[i];
}
__global__ void probe_exp2_cubic(float* v) { *v = exp2_cubic(*v); }
}
