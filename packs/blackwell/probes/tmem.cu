// Compiled for sm_100a and looked at, never run by us: one kernel per wrapper of tmem.cuh.
#include "../templates/tmem.cuh"

using namespace ptx;

template <int N>
__device__ void load(uint32_t* out, uint32_t address) {
  uint32_t r[N];
  tmem_ld(r, address);
  tmem_wait_ld();
  for (int i = 0; i < N; ++i) out[N + i] = r[i];
}

template <int N>
__device__ void store(const uint32_t* in, uint32_t address) {
  uint32_t r[N];
  for (int i = 0; i < N; ++i) r[i] = in[N + i];
  tmem_st(address, r);
}

extern "C" {
__global__ void probe_tmem_alloc(uint32_t slot) { tmem_alloc<1>(slot, 512); }
__global__ void probe_tmem_alloc_pair(uint32_t slot) { tmem_alloc<2>(slot, 256); }
__global__ void probe_tmem_relinquish(uint32_t a) { tmem_relinquish<1>(), tmem_dealloc<1>(a, 32); }
__global__ void probe_tmem_relinquish_pair(uint32_t a) {
  tmem_relinquish<2>(), tmem_dealloc<2>(a, 32);
}
__global__ void probe_tmem_dealloc(uint32_t a) { tmem_dealloc<1>(a, 512); }
__global__ void probe_tmem_dealloc_pair(uint32_t a) { tmem_dealloc<2>(a, 256); }
__global__ void probe_tmem_ld(uint32_t* out, uint32_t a) {
  load<1>(out, a), load<2>(out, a), load<4>(out, a), load<8>(out, a), load<16>(out, a);
  load<32>(out, a), load<64>(out, a), load<128>(out, tmem_address(a, 32, 128));
}
__global__ void probe_tmem_st(const uint32_t* in, uint32_t a) {
  store<1>(in, a), store<2>(in, a), store<4>(in, a), store<8>(in, a), store<16>(in, a);
  store<32>(in, a), store<64>(in, a), store<128>(in, a);
  tmem_wait_st();
}
__global__ void probe_tcgen05_fence(uint32_t a) {
  uint32_t r[1] = {a};
  tmem_st(a, r);
  tmem_wait_st();
  tcgen05_fence_before();
  __syncthreads();
  tcgen05_fence_after();
  tmem_ld(r, a);
  tmem_wait_ld();
}
}
