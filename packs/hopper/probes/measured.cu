// Figures that parameters.md and the contracts quote: cycles of one multiprocessor, median of 9
// runs.
#include "wgmma.cuh"
#include "../templates/fastmath.cuh"
#include "../templates/mbarrier.cuh"
#include "../templates/tma.cuh"
#include <algorithm>

__device__ inline long long now() {
  long long t;
  asm volatile("mov.u64 %0, %%clock64;" : "=l"(t)::"memory");
  return t;
}

// One warpgroup alone or two side by side, each with its own accumulator; 64 groups of 4 products.
template <int N, bool REGISTERS>
__global__ __launch_bounds__(256) void measured_wgmma(long long* cycles, float* sink) {
  const uint32_t base = smem_address(aligned_shared());
  const uint64_t b = k_major(base + 8192);
  float d[N / 2];
  uint32_t a[4] = {0, 0, 0, 0};
  for (int i = 0; i < N / 2; ++i) d[i] = 0;
  __syncthreads();
  const long long start = now();
#pragma unroll 1
  for (int group = 0; group < 64; ++group) {
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      if constexpr (REGISTERS)
        wgmma_rs<N>(d, a, advance(b, 32 * k), 1);
      else
        wgmma_ss<N>(d, advance(k_major(base), 32 * k), advance(b, 32 * k), 1);
    }
    wgmma_commit();
  }
  wgmma_wait<0>();
  wgmma_settle(d);
  __syncthreads();
  if (threadIdx.x == 0) *cycles = now() - start;
  float sum = 0;
  for (int i = 0; i < N / 2; ++i) sum += d[i];
  if (sum == 1.f) *sink = sum;
}

__global__ void measured_mbarrier(long long* cycles) {
  __shared__ alignas(8) uint64_t object;
  const uint32_t bar = smem_address(&object);
  mbarrier_init(bar, 1);
  const long long start = now();
  for (int i = 0; i < 64; ++i) {
    mbarrier_arrive(bar);
    mbarrier_wait(bar, i & 1);
  }
  *cycles = (now() - start) / 64;
}

__global__ void measured_tma(const __grid_constant__ CUtensorMap map, long long* cycles) {
  __shared__ alignas(1024) uint8_t values[8192];
  __shared__ alignas(8) uint64_t object;
  const uint32_t bar = smem_address(&object);
  mbarrier_init(bar, 1);
  fence_mbarrier_init();
  prefetch_tensor_map(&map);
  __nanosleep(20000);
  for (int i = 0; i < 4; ++i) {  // tile 0 from memory, then from the L2 cache; tile 1 likewise
    mbarrier_arrive_expect(bar, 8192);
    const long long start = now();
    tma_load(smem_address(values), &map, bar, {0, 4096 * (i / 2)});
    mbarrier_wait(bar, i & 1);
    cycles[i] = now() - start;
  }
}

__global__ __launch_bounds__(1024) void measured_exp2(long long* cycles, float* sink) {
  float x[8];
  for (int i = 0; i < 8; ++i) x[i] = threadIdx.x * 0.001f + i;
  __syncthreads();
  const long long start = now();
#pragma unroll 1
  for (int round = 0; round < 128; ++round)
#pragma unroll
    for (int i = 0; i < 8; ++i) x[i] = exp2_approx(x[i]);
  __syncthreads();
  if (threadIdx.x == 0) *cycles = now() - start;
  float sum = 0;
  for (int i = 0; i < 8; ++i) sum += x[i];
  if (sum == -1.f) *sink = sum;
}

__global__ void measured_named_barrier(long long* cycles) {
  const long long start = now();
  for (int i = 0; i < 64; ++i) named_barrier_sync(1, 128);
  if (threadIdx.x == 0) *cycles = (now() - start) / 64;
}

__global__ __cluster_dims__(2, 1, 1) void measured_cluster(long long* cycles) {
  cluster_sync();
  const long long start = now();
  for (int i = 0; i < 64; ++i) cluster_sync();
  if (threadIdx.x == 0 && blockIdx.x == 0) *cycles = (now() - start) / 64;
}

// Each load gives the next one's place: cycles of one load from shared memory, L1, L2 and memory.
__global__ void measured_loads(const uint32_t* chain, long long* cycles) {
  __shared__ uint32_t local[1024];
  for (int i = 0; i < 1024; ++i) local[i] = (i + 33) % 1024;
  uint32_t at = 0;
  long long start = now();
  for (int i = 0; i < 512; ++i) at = static_cast<volatile uint32_t*>(local)[at];
  cycles[0] = (now() - start) / 512;
  uint32_t used = at;
  for (int pass = 0; pass < 2; ++pass) {  // 16 KiB, the second time from L1
    at = 0;
    start = now();
    for (int i = 0; i < 128; ++i)
      asm volatile("ld.global.ca.u32 %0, [%1];" : "=r"(at) : "l"(chain + at) : "memory");
    used += at;
    cycles[1] = (now() - start) / 128;
  }
  for (int pass = 0; pass < 2; ++pass) {  // past L1: from memory, then from L2
    at = 1 << 16;
    start = now();
    for (int i = 0; i < 512; ++i)
      asm volatile("ld.global.cg.u32 %0, [%1];" : "=r"(at) : "l"(chain + at) : "memory");
    used += at;
    cycles[3 - pass] = (now() - start) / 512;
  }
  cycles[4] = used;
}

long long median_of_nine(const std::function<long long()>& once) {
  std::vector<long long> runs;
  for (int i = 0; i < 9; ++i) runs.push_back(once());
  std::nth_element(runs.begin(), runs.begin() + 4, runs.end());
  return runs[4];
}

template <int N, bool REGISTERS>
void wgmma() {
  Array<long long> cycles(1);
  Array<float> sink(1);
  auto* kernel = measured_wgmma<N, REGISTERS>;
  cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, WGMMA_SHARED_BYTES);
  double each[2];
  for (int groups = 1; groups <= 2; ++groups)
    each[groups - 1] = median_of_nine([&] {
                         kernel<<<1, 128 * groups, WGMMA_SHARED_BYTES>>>(cycles.data, sink.data);
                         cycles.pull();
                         return cycles[0];
                       }) /
                       (256.0 * groups);
  line("measured_wgmma_cycles", {}, each[0] > 0,
       text("{\"n\": %d, \"a\": \"%s\", \"one_warpgroup\": %.1f, \"two_warpgroups\": %.1f}", N,
            REGISTERS ? "registers" : "shared", each[0], each[1]));
}

void single(const char* name, int threads, int blocks, void (*kernel)(long long*)) {
  Array<long long> cycles(1);
  const long long seen = median_of_nine([&] {
    kernel<<<blocks, threads>>>(cycles.data);
    cycles.pull();
    return cycles[0];
  });
  line(name, {}, seen > 0, text("{\"cycles\": %lld}", seen));
}

void tma() {
  Array<__nv_bfloat16> tensor(size_t(16384) * 1024);
  Array<long long> cycles(4);
  CUtensorMap map;
  const bool described = make_bf16_map(&map, tensor.data, 16384, 1024, 2048, 64, 64);
  Array<uint8_t> flush(size_t(256) << 20);
  std::vector<long long> cold, warm;
  for (int run = 0; run < 9; ++run) {
    cudaMemset(flush.data, run, flush.host.size());
    measured_tma<<<1, 1>>>(map, cycles.data);
    cycles.pull();
    cold.push_back(cycles[2]), warm.push_back(cycles[3]);
  }
  std::sort(cold.begin(), cold.end()), std::sort(warm.begin(), warm.end());
  line("measured_tma_tile_8_kib", {}, described,
       text("{\"cycles_from_memory\": %lld, \"cycles_from_l2\": %lld}", cold[4], warm[4]));
}

// Steps of 128 bytes over 16 KiB for L1; of 64 KiB plus 128 bytes for L2 and memory.
void loads() {
  Array<uint32_t> chain(size_t(16) << 20);
  for (uint32_t i = 0; i < 128; ++i) chain[32 * i] = 32 * ((i + 1) % 128);
  for (uint32_t i = 0; i < 512; ++i)
    chain[(1 << 16) + 16416 * i] = (1 << 16) + 16416 * ((i + 1) % 512);
  chain.push();
  Array<uint8_t> flush(size_t(256) << 20);
  Array<long long> cycles(5);
  std::vector<long long> seen[4];
  for (int run = 0; run < 9; ++run) {
    cudaMemset(flush.data, run, flush.host.size());
    measured_loads<<<1, 1>>>(chain.data, cycles.data);
    cycles.pull();
    for (int i = 0; i < 4; ++i) seen[i].push_back(cycles[i]);
  }
  for (auto& one : seen) std::sort(one.begin(), one.end());
  line("measured_load_latency", {}, seen[0][4] > 0,
       text("{\"shared\": %lld, \"l1\": %lld, \"l2\": %lld, \"memory\": %lld}", seen[0][4],
            seen[1][4], seen[2][4], seen[3][4]));
}

void exp2_rate() {
  Array<long long> cycles(1);
  Array<float> sink(1);
  const long long seen = median_of_nine([&] {
    measured_exp2<<<1, 1024>>>(cycles.data, sink.data);
    cycles.pull();
    return cycles[0];
  });
  line("measured_exp2", {}, seen > 0,
       text("{\"per_cycle_and_multiprocessor\": %.2f}", 1024.0 * 1024 / seen));
}

void device() {
  cudaDeviceProp properties;
  cudaGetDeviceProperties(&properties, 0);
  int driver = 0, runtime = 0, clock_khz = 0, memory_khz = 0, persisting = 0;
  cudaDriverGetVersion(&driver), cudaRuntimeGetVersion(&runtime);
  cudaDeviceGetAttribute(&clock_khz, cudaDevAttrClockRate, 0);
  cudaDeviceGetAttribute(&memory_khz, cudaDevAttrMemoryClockRate, 0);
  cudaDeviceGetAttribute(&persisting, cudaDevAttrMaxPersistingL2CacheSize, 0);
  line("device", {}, properties.major == 9,
       text("{\"name\": \"%s\", \"multiprocessors\": %d, \"memory_bytes\": %zu, \"l2_bytes\": %d, "
            "\"shared_bytes_per_block\": %zu, \"shared_bytes_per_multiprocessor\": %zu, "
            "\"registers_per_multiprocessor\": %d, \"clock_khz\": %d, \"memory_clock_khz\": %d, "
            "\"memory_bus_bits\": %d, ",
            properties.name, properties.multiProcessorCount, properties.totalGlobalMem,
            properties.l2CacheSize, properties.sharedMemPerBlockOptin,
            properties.sharedMemPerMultiprocessor, properties.regsPerMultiprocessor, clock_khz,
            memory_khz, properties.memoryBusWidth) +
           text("\"cuda_driver\": %d, \"cuda_runtime\": %d}", driver, runtime));
}

int main() {
  device();
  wgmma<64, false>(), wgmma<128, false>(), wgmma<192, false>(), wgmma<256, false>();
  wgmma<64, true>(), wgmma<128, true>(), wgmma<256, true>();
  tma();
  loads();
  exp2_rate();
  single("measured_mbarrier_round_trip", 1, 1, measured_mbarrier);
  single("measured_named_barrier_128_threads", 128, 1, measured_named_barrier);
  single("measured_cluster_sync_2_blocks", 128, 2, measured_cluster);
  const cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) line("measured", {}, false, text("\"%s\"", cudaGetErrorString(error)));
  return failures != 0;
}
