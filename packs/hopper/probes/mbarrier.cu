// Probes of templates/mbarrier.cuh.
#include "probe.cuh"
#include "../templates/mbarrier.cuh"
#include "../templates/sync.cuh"
#include "../templates/tma.cuh"

using namespace ptx;

// Warpgroup 1 writes, warpgroup 0 reads; six phases, so that parity turns three times.
__global__ void mbarrier_phases(int* out) {
  __shared__ int values[128];
  __shared__ alignas(8) uint64_t bars[2];
  const uint32_t full = smem_address(&bars[0]), empty = smem_address(&bars[1]);
  if (threadIdx.x == 0) {
    mbarrier_init(full, 128);
    mbarrier_init(empty, 128);
    fence_mbarrier_init();
  }
  __syncthreads();
  const int thread = threadIdx.x % 128;
  for (int round = 0; round < 6; ++round) {
    if (threadIdx.x >= 128) {
      mbarrier_wait(empty, (round & 1) ^ 1);
      values[thread] = 100 * round + thread;
      mbarrier_arrive(full);
    } else {
      mbarrier_wait(full, round & 1);
      out[128 * round + thread] = values[127 - thread];
      mbarrier_arrive(empty);
    }
  }
}

__global__ void mbarrier_parity(int* out) {
  __shared__ alignas(8) uint64_t object;
  const uint32_t bar = smem_address(&object);
  mbarrier_init(bar, 1);
  out[0] = mbarrier_test(bar, 0), out[1] = mbarrier_test(bar, 1), out[2] = mbarrier_try(bar, 1);
  mbarrier_arrive(bar);
  out[3] = mbarrier_test(bar, 0), out[4] = mbarrier_test(bar, 1), out[5] = mbarrier_try(bar, 0);
  mbarrier_arrive(bar);
  out[6] = mbarrier_test(bar, 0), out[7] = mbarrier_test(bar, 1);
}

__global__ void mbarrier_bytes(const int* in, int* out) {
  __shared__ alignas(128) int values[64];
  __shared__ alignas(8) uint64_t object;
  const uint32_t bar = smem_address(&object), at = smem_address(values);
  if (threadIdx.x == 32) {  // another thread, or the compiler makes one instruction of the two
    mbarrier_init(bar, 1);
    fence_mbarrier_init();
    mbarrier_expect(bar, 128);
  }
  __syncthreads();
  if (threadIdx.x != 0) return;
  mbarrier_arrive_expect(bar, 128);
  bulk_load(at, in, 128, bar);
  __nanosleep(100000);
  out[64] = mbarrier_test(bar, 0);
  bulk_load(at + 128, in + 32, 128, bar);
  mbarrier_wait(bar, 0);
  for (int i = 0; i < 64; ++i) out[i] = values[i];
}

__global__ void mbarrier_life(int* out) {
  __shared__ alignas(8) uint64_t object;
  const uint32_t bar = smem_address(&object);
  mbarrier_init(bar, 1);
  mbarrier_arrive(bar);
  mbarrier_invalidate(bar);
  object = 42;
  out[0] = int(object);
  mbarrier_init(bar, 2);
  mbarrier_arrive(bar);
  out[1] = mbarrier_test(bar, 0);
  mbarrier_arrive(bar);
  out[2] = mbarrier_test(bar, 0);
  mbarrier_invalidate(bar);
}

// Block 1 sends values into block 0 and signals; block 0 answers through a barrier in block 1.
__global__ __cluster_dims__(2, 1, 1) void mbarrier_remote(int* out) {
  __shared__ int value;
  __shared__ alignas(8) uint64_t bars[2];
  const uint32_t data = smem_address(&bars[0]), taken = smem_address(&bars[1]);
  const bool receiver = cluster_rank() == 0;
  if (threadIdx.x == 0) {
    mbarrier_init(data, 1);
    mbarrier_init(taken, 1);
    fence_mbarrier_init();
  }
  cluster_sync();
  for (int round = 0; threadIdx.x == 0 && round < 8; ++round) {
    if (receiver) {
      mbarrier_wait_cluster(data, round & 1);
      out[round] = *static_cast<volatile int*>(&value);
      mbarrier_arrive_remote(taken, 1);
    } else {
      mbarrier_wait(taken, (round & 1) ^ 1);
      store_remote(map_to_block(smem_address(&value), 0), 1000 + round);
      mbarrier_arrive_remote_release(data, 0);
    }
  }
  cluster_sync();
}

// 20 buffers through a ring of three, filled by bulk copies.
__global__ void mbarrier_ring(const int* in, int* out) {
  constexpr int STAGES = 3, ITEMS = 20;
  __shared__ alignas(128) int values[STAGES][32];
  __shared__ alignas(8) uint64_t bars[2 * STAGES];
  const uint32_t full = smem_address(bars), empty = full + 8 * STAGES;
  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; ++s) {
      mbarrier_init(full + 8 * s, 1);
      mbarrier_init(empty + 8 * s, 32);
    }
    fence_mbarrier_init();
  }
  __syncthreads();
  Ring<STAGES> ring;
  for (int item = 0; item < ITEMS; ++item, ring.advance()) {
    if (threadIdx.x == 32) {
      mbarrier_wait(empty + 8 * ring.stage, ring.phase ^ 1);
      mbarrier_arrive_expect(full + 8 * ring.stage, 128);
      bulk_load(smem_address(values[ring.stage]), in + 32 * item, 128, full + 8 * ring.stage);
    } else if (threadIdx.x < 32) {
      mbarrier_wait(full + 8 * ring.stage, ring.phase);
      out[32 * item + threadIdx.x] = values[ring.stage][threadIdx.x];
      mbarrier_arrive(empty + 8 * ring.stage);
    }
  }
}

std::string phases() {
  Array<int> out(768);
  mbarrier_phases<<<1, 256>>>(out.data);
  out.pull();
  std::vector<int> expected(768);
  for (int i = 0; i < 768; ++i) expected[i] = 100 * (i / 128) + 127 - i % 128;
  return compare(out.host, expected);
}

std::string parity() {
  Array<int> out(8);
  mbarrier_parity<<<1, 1>>>(out.data);
  out.pull();
  return compare(out.host, {0, 1, 1, 1, 0, 1, 0, 1});
}

std::string bytes() {
  Array<int> in(64), out(65, -1);
  for (int i = 0; i < 64; ++i) in[i] = 5 * i;
  in.push();
  mbarrier_bytes<<<1, 64>>>(in.data, out.data);
  out.pull();
  std::vector<int> expected = in.host;
  expected.push_back(0);
  return compare(out.host, expected);
}

std::string life() {
  Array<int> out(3, -1);
  mbarrier_life<<<1, 1>>>(out.data);
  out.pull();
  return compare(out.host, {42, 0, 1});
}

std::string remote() {
  Array<int> out(8);
  mbarrier_remote<<<2, 32>>>(out.data);
  out.pull();
  return compare(out.host, {1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007});
}

std::string ring() {
  Array<int> in(640), out(640);
  for (int i = 0; i < 640; ++i) in[i] = small(i, 3, 1000);
  in.push();
  mbarrier_ring<<<1, 64>>>(in.data, out.data);
  out.pull();
  return compare(out.host, in.host);
}

int main() {
  probe("mbarrier_phases", {"mbarrier_init", "mbarrier_arrive", "mbarrier_wait"}, phases);
  probe("mbarrier_parity", {"mbarrier_test", "mbarrier_try"}, parity);
  probe("mbarrier_bytes", {"mbarrier_expect", "mbarrier_arrive_expect"}, bytes);
  probe("mbarrier_life", {"mbarrier_invalidate"}, life);
  probe("mbarrier_remote",
        {"mbarrier_arrive_remote", "mbarrier_arrive_remote_release", "mbarrier_wait_cluster"},
        remote);
  probe("mbarrier_ring", {"Ring"}, ring);
  return failures != 0;
}
