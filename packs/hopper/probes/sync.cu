// Probes of templates/sync.cuh.
#include "probe.cuh"
#include "../templates/mbarrier.cuh"
#include "../templates/sync.cuh"
#include "../templates/tma.cuh"

using namespace ptx;

__global__ void sync_address(int* out) {
  __shared__ int values[256];
  values[threadIdx.x] = 3 * threadIdx.x;
  __syncthreads();
  int seen;
  asm volatile("ld.shared.s32 %0, [%1];" : "=r"(seen) : "r"(smem_address(&values[threadIdx.x])));
  out[threadIdx.x] = seen;
  out[128 + threadIdx.x] = align_up(smem_address(values) + 4 * threadIdx.x, 1024) % 1024 == 0 &&
                           align_up(threadIdx.x, 64) == (threadIdx.x + 63) / 64 * 64;
}

__global__ void sync_elect(int* out) {
  if (elect_one()) atomicAdd(&out[threadIdx.x / 32], 1);
}

__global__ void sync_warpgroup_index(int* out) { out[threadIdx.x] = warpgroup_index(); }

__global__ void sync_named_barriers(int* out) {
  __shared__ int values[128], totals[2];
  const int group = warpgroup_index(), thread = threadIdx.x % 128;
  for (int round = 0; round < 4; ++round) {
    if (group == 1) {
      values[thread] = thread + round;
      named_barrier_arrive(1, 256);
      named_barrier_sync(2, 256);
    } else {
      named_barrier_sync(1, 256);
      out[round * 128 + thread] = values[127 - thread];
      named_barrier_arrive(2, 256);
    }
  }
  if (thread == 0) totals[group] = 0;
  named_barrier_sync(3 + group, 128);
  atomicAdd(&totals[group], 1);
  named_barrier_sync(3 + group, 128);
  if (thread == 0) out[512 + group] = totals[group];
}

__global__ __launch_bounds__(384, 1) void sync_setmaxnreg(const float* in, float* out) {
  const int group = warpgroup_index(), thread = threadIdx.x % 128;
  if (group == 0) {
    setmaxnreg_dec<40>();
    out[threadIdx.x] = in[threadIdx.x];
    return;
  }
  setmaxnreg_inc<232>();
  float values[192];
#pragma unroll
  for (int i = 0; i < 192; ++i) values[i] = in[(thread + i) % 384];
#pragma unroll 1
  for (int round = 0; round < 3; ++round)
#pragma unroll
    for (int i = 0; i < 192; ++i) values[i] = values[i] * 2.f + values[(i + 1) % 192];
  float sum = 0;
#pragma unroll
  for (int i = 0; i < 192; ++i) sum += values[i] * float(i % 3);
  out[threadIdx.x] = sum;
}

__global__ __cluster_dims__(4, 1, 1) void sync_cluster(int* out) {
  __shared__ int mine[2];
  const uint32_t rank = cluster_rank(), next = (rank + 1) % cluster_size();
  if (threadIdx.x == 0) mine[0] = 10 * rank;
  cluster_arrive();
  cluster_wait();
  if (threadIdx.x == 0) store_remote(map_to_block(smem_address(&mine[1]), next), 100 + rank);
  cluster_sync();
  if (threadIdx.x == 0) {
    out[4 * blockIdx.x] = rank;
    out[4 * blockIdx.x + 1] = cluster_size();
    out[4 * blockIdx.x + 2] = load_remote(map_to_block(smem_address(&mine[0]), next));
    out[4 * blockIdx.x + 3] = mine[1];
  }
  cluster_sync();
}

__global__ void sync_fences(int* scratch, int* out) {
  __shared__ alignas(128) int values[128];
  __shared__ alignas(8) uint64_t bar;
  if (threadIdx.x == 0) {
    mbarrier_init(smem_address(&bar), 1);
    fence_mbarrier_init();
  }
  scratch[threadIdx.x] = 7 * threadIdx.x;
  fence_async();
  __syncthreads();
  if (threadIdx.x == 0) {
    mbarrier_arrive_expect(smem_address(&bar), 512);
    bulk_load(smem_address(values), scratch, 512, smem_address(&bar));
  }
  mbarrier_wait(smem_address(&bar), 0);
  values[threadIdx.x] += 1;
  fence_async_shared();
  __syncthreads();
  if (threadIdx.x == 0) {
    bulk_store(out, smem_address(values), 512);
    bulk_commit();
    bulk_wait();
  }
}

std::string address() {
  Array<int> out(256);
  sync_address<<<1, 128>>>(out.data);
  out.pull();
  std::vector<int> expected(256, 1);
  for (int i = 0; i < 128; ++i) expected[i] = 3 * i;
  return compare(out.host, expected);
}

std::string elect() {
  Array<int> out(4);
  sync_elect<<<1, 128>>>(out.data);
  out.pull();
  return compare(out.host, {1, 1, 1, 1});
}

std::string warpgroup() {
  Array<int> out(384, -1);
  sync_warpgroup_index<<<1, 384>>>(out.data);
  out.pull();
  std::vector<int> expected(384);
  for (int i = 0; i < 384; ++i) expected[i] = i / 128;
  return compare(out.host, expected);
}

std::string named_barriers() {
  Array<int> out(514);
  sync_named_barriers<<<1, 256>>>(out.data);
  out.pull();
  std::vector<int> expected(514, 128);
  for (int i = 0; i < 512; ++i) expected[i] = 127 - i % 128 + i / 128;
  return compare(out.host, expected);
}

std::string registers() {
  Array<float> in(384), out(384);
  for (int i = 0; i < 384; ++i) in[i] = small(i, 1, 4);
  in.push();
  sync_setmaxnreg<<<1, 384>>>(in.data, out.data);
  out.pull();
  std::vector<float> expected = in.host;
  for (int t = 128; t < 384; ++t) {
    std::vector<float> values(192);
    for (int i = 0; i < 192; ++i) values[i] = in[(t % 128 + i) % 384];
    for (int round = 0; round < 3; ++round)
      for (int i = 0; i < 192; ++i) values[i] = values[i] * 2.f + values[(i + 1) % 192];
    expected[t] = 0;
    for (int i = 0; i < 192; ++i) expected[t] += values[i] * float(i % 3);
  }
  return compare(out.host, expected);
}

std::string cluster() {
  Array<int> out(32);
  sync_cluster<<<8, 32>>>(out.data);
  out.pull();
  std::vector<int> expected(32);
  for (int block = 0; block < 8; ++block) {
    const int rank = block % 4;
    expected[4 * block] = rank, expected[4 * block + 1] = 4;
    expected[4 * block + 2] = 10 * ((rank + 1) % 4), expected[4 * block + 3] = 100 + (rank + 3) % 4;
  }
  return compare(out.host, expected);
}

std::string fences() {
  Array<int> scratch(128), out(128);
  sync_fences<<<1, 128>>>(scratch.data, out.data);
  out.pull();
  std::vector<int> expected(128);
  for (int i = 0; i < 128; ++i) expected[i] = 7 * i + 1;
  return compare(out.host, expected);
}

int main() {
  probe("sync_address", {"smem_address", "align_up"}, address);
  probe("sync_elect", {"elect_one"}, elect);
  probe("sync_warpgroup_index", {"warpgroup_index"}, warpgroup);
  probe("sync_named_barriers", {"named_barrier_sync", "named_barrier_arrive"}, named_barriers);
  probe("sync_setmaxnreg", {"setmaxnreg_inc", "setmaxnreg_dec"}, registers);
  probe("sync_cluster",
        {"cluster_rank", "cluster_size", "cluster_arrive", "cluster_wait", "cluster_sync",
         "map_to_block", "store_remote", "load_remote"},
        cluster);
  probe("sync_fences", {"fence_async", "fence_async_shared", "fence_mbarrier_init"}, fences);
  return failures != 0;
}
