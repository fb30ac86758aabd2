// O = softmax(Q K^T / sqrt(128)) V and its natural-log LSE; Q, K, V, O [4,48,4096,128] bf16,
// LSE [4,48,4096] fp32, causal mask (key <= query). Hopper (sm_90a).
//
// Shapes and budget
//   block           128 rows of Q of one head: two consumer warpgroups of 64 rows, one producer
//   tiles           K and V in tiles of 128 rows, two stages each; Q once
//   shared memory   Q 32 KiB + 2 x (K 32 KiB + V 32 KiB) = 160 KiB, 128-byte swizzle
//   a 128 x 128 tile lies in shared memory as two panels of 128 rows x 64 columns (16 KiB each)
//   tensor maps     globalDim {128, 4*48*4096}, stride {256 bytes}, box {64, 128} (O: {64, 64})
//   registers       O 64, S 64, P 32 per consumer thread
// Schedule: the scores of tile j+1 and the product P V of tile j are in flight together, so that the
// exponentials overlap with tensor work; and the two warpgroups take turns in issuing, so that one's
// exponentials run under the other's products. Tiles of K and V are walked from the last to the first,
// so that with a causal mask only step 0 meets the diagonal.
#include <cstdint>
#include <cstdio>
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace {

constexpr bool CAUSAL = true;
constexpr int BATCH = 4, HEADS = 48, LENGTH = 4096, DIM = 128;
constexpr int ROWS = BATCH * HEADS * LENGTH;
constexpr int TILE = 128, STAGES = 2, THREADS = 384;
constexpr int PANEL_BYTES = TILE * 64 * 2, TILE_BYTES = 2 * PANEL_BYTES;
constexpr int SMEM_BYTES = 1024 + (1 + 2 * STAGES) * TILE_BYTES + (1 + 4 * STAGES) * 8;
constexpr int STEPS = LENGTH / TILE;
constexpr float SCALE = 0.08838834764831845f;  // 1 / sqrt(128)
constexpr float LOG2E = 1.4426950408889634f;

__device__ inline uint32_t shared_address(const void* p) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(p));
}

__device__ inline void barrier_init(uint32_t bar, uint32_t arrivals) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(arrivals));
}

__device__ inline void barrier_expect(uint32_t bar, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(bytes)
               : "memory");
}

__device__ inline void barrier_arrive(uint32_t bar) {
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(bar) : "memory");
}

__device__ inline void barrier_wait(uint32_t bar, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n}" ::"r"(bar), "r"(parity)
      : "memory");
}

// Rows y..y+127 of a [ROWS, 128] matrix into two panels.
__device__ inline void load_tile(uint32_t dst, const CUtensorMap* map, int y, uint32_t bar) {
#pragma unroll
  for (int panel = 0; panel < 2; ++panel)
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
        " [%0], [%1, {%2, %3}], [%4];" ::"r"(dst + panel * PANEL_BYTES),
        "l"(map), "r"(panel * 64), "r"(y), "r"(bar)
        : "memory");
}

constexpr uint64_t SWIZZLE_128B = uint64_t(1) << 62;

// K-major (Q and K): groups of 8 rows are 1024 bytes apart; the leading offset is not used.
__device__ inline uint64_t row_operand(uint32_t address) {
  return (uint64_t(address & 0x3FFFF) >> 4) | (uint64_t(1) << 16) | (uint64_t(1024 >> 4) << 32) |
         SWIZZLE_128B;
}

// MN-major (V): panels of 64 columns are PANEL_BYTES apart, groups of 8 rows 1024 bytes.
__device__ inline uint64_t column_operand(uint32_t address) {
  return (uint64_t(address & 0x3FFFF) >> 4) | (uint64_t(PANEL_BYTES >> 4) << 16) |
         (uint64_t(1024 >> 4) << 32) | SWIZZLE_128B;
}

#define ACC4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define ACC16(i) ACC4(i), ACC4(i + 4), ACC4(i + 8), ACC4(i + 12)
#define ACC64 ACC16(0), ACC16(16), ACC16(32), ACC16(48)

// d (64 x 128) = or += A (64 x 16, shared, K-major) * B (128 x 16, shared, K-major)^T
__device__ inline void multiply_shared(float (&d)[64], uint64_t a, uint64_t b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %66, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
      "}, %64, %65, p, 1, 1, 0, 0;\n}"
      : ACC64
      : "l"(a), "l"(b), "r"(accumulate));
}

// d (64 x 128) = or += A (64 x 16, registers) * B (16 x 128, shared, N-major)
__device__ inline void multiply_registers(float (&d)[64], const uint32_t* a, uint64_t b,
                                          int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %69, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
      "}, {%64, %65, %66, %67}, %68, p, 1, 1, 1;\n}"
      : ACC64
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate));
}

__device__ inline void fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
template <int PENDING>
__device__ inline void wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}
// Keeps reads of an accumulator behind the wait that finished it.
__device__ inline void settle(float (&d)[64]) {
#pragma unroll
  for (int i = 0; i < 64; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

__device__ inline uint32_t pack(float low, float high) {
  __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<uint32_t*>(&pair);
}

__device__ inline float power_of_two(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

__device__ inline float quad_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffff, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffff, x, 2));
}

__device__ inline float quad_sum(float x) {
  x += __shfl_xor_sync(0xffffffff, x, 1);
  return x + __shfl_xor_sync(0xffffffff, x, 2);
}

// Named barriers 3 and 4: a warpgroup waits for its turn to issue and hands it on.
__device__ inline void await_turn(int group) {
  asm volatile("bar.sync %0, 256;" ::"r"(3 + group) : "memory");
}
__device__ inline void hand_turn_to(int group) {
  asm volatile("bar.arrive %0, 256;" ::"r"(3 + group) : "memory");
}

__device__ inline void scores(float (&s)[64], uint32_t q, uint32_t k) {
#pragma unroll
  for (int i = 0; i < DIM / 16; ++i) {
    const uint32_t at = (i / 4) * PANEL_BYTES + (i % 4) * 32;
    multiply_shared(s, row_operand(q + at), row_operand(k + at), i);
  }
}

__device__ inline void add_values(float (&o)[64], const uint32_t (&p)[32], uint32_t v, int step) {
#pragma unroll
  for (int i = 0; i < TILE / 16; ++i)
    multiply_registers(o, p + 4 * i, column_operand(v + i * 16 * 128), step | i);
}

// Each thread owns two rows (lane / 4 and 8 below); s holds them as in d[4j..4j+3].
struct Softmax {
  float top[2] = {-INFINITY, -INFINITY}, sum[2] = {0.f, 0.f}, shrink[2];

  // Turns raw scores into probabilities under the new maxima; `shrink` then rescales older sums.
  __device__ void update(float (&s)[64]) {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      float highest = top[r];
#pragma unroll
      for (int j = 0; j < 16; ++j) highest = fmaxf(highest, fmaxf(s[4 * j + 2 * r], s[4 * j + 2 * r + 1]));
      highest = quad_max(highest);
      shrink[r] = power_of_two((top[r] - highest) * (SCALE * LOG2E));
      top[r] = highest;
      const float offset = highest * (SCALE * LOG2E);
      float total = 0.f;
#pragma unroll
      for (int j = 0; j < 16; ++j)
#pragma unroll
        for (int c = 2 * r; c < 2 * r + 2; ++c) {
          s[4 * j + c] = power_of_two(fmaf(s[4 * j + c], SCALE * LOG2E, -offset));
          total += s[4 * j + c];
        }
      sum[r] = sum[r] * shrink[r] + total;
    }
  }
};

// Scores of keys behind their query, in the tile whose queries and keys have the same positions.
__device__ inline void hide_future(float (&s)[64], int group, int thread) {
  const int row = group * 64 + (thread / 32) * 16 + (thread % 32) / 4;
#pragma unroll
  for (int i = 0; i < 64; ++i) {
    const int key = 8 * (i / 4) + 2 * (thread % 4) + i % 2;
    if (key > row + 8 * ((i >> 1) & 1)) s[i] = -INFINITY;
  }
}

__device__ inline void rescale(float (&o)[64], const float (&by)[2]) {
#pragma unroll
  for (int i = 0; i < 64; ++i) o[i] *= by[(i >> 1) & 1];
}

__device__ inline void to_operand(uint32_t (&p)[32], const float (&s)[64]) {
#pragma unroll
  for (int i = 0; i < 32; ++i) p[i] = pack(s[2 * i], s[2 * i + 1]);
}

struct Places {
  uint32_t q, k, v, q_full, k_full, k_empty, v_full, v_empty;
};

__device__ inline void produce(const Places& at, const CUtensorMap* map_q, const CUtensorMap* map_k,
                               const CUtensorMap* map_v, int first_q, int first_k, int steps) {
  barrier_expect(at.q_full, TILE_BYTES);
  load_tile(at.q, map_q, first_q, at.q_full);
  for (int step = 0; step < steps; ++step) {
    const int stage = step % STAGES, row = first_k + (steps - 1 - step) * TILE;
    const uint32_t parity = (step / STAGES & 1) ^ 1;
    barrier_wait(at.k_empty + 8 * stage, parity);
    barrier_expect(at.k_full + 8 * stage, TILE_BYTES);
    load_tile(at.k + stage * TILE_BYTES, map_k, row, at.k_full + 8 * stage);
    barrier_wait(at.v_empty + 8 * stage, parity);
    barrier_expect(at.v_full + 8 * stage, TILE_BYTES);
    load_tile(at.v + stage * TILE_BYTES, map_v, row, at.v_full + 8 * stage);
  }
}

// O through this warpgroup's own rows of Q's tile, which nobody reads any more, then TMA.
__device__ inline void write_output(const float (&o)[64], uint32_t q, const CUtensorMap* map_o,
                                    int y, int group, int thread) {
  const int lane = thread % 32, row = (thread / 32) * 16 + lane % 16;
  asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory");
#pragma unroll
  for (int j = 0; j < 16; j += 2) {
    const int chunk = j % 8 + lane / 16;
    const uint32_t at = q + (j / 8) * PANEL_BYTES + row * 128 + ((chunk ^ (row & 7)) << 4);
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at),
                 "r"(pack(o[4 * j], o[4 * j + 1])), "r"(pack(o[4 * j + 2], o[4 * j + 3])),
                 "r"(pack(o[4 * j + 4], o[4 * j + 5])), "r"(pack(o[4 * j + 6], o[4 * j + 7]))
                 : "memory");
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory");
  if (thread != 0) return;
#pragma unroll
  for (int panel = 0; panel < 2; ++panel)
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(
                     map_o),
                 "r"(panel * 64), "r"(y), "r"(q + panel * PANEL_BYTES)
                 : "memory");
  asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
}

__device__ inline void finish(float (&o)[64], const Softmax& softmax, float* lse, int thread) {
  const int row = (thread / 32) * 16 + (thread % 32) / 4;
  float inverse[2];
#pragma unroll
  for (int r = 0; r < 2; ++r) {
    const float sum = quad_sum(softmax.sum[r]);
    inverse[r] = 1.f / sum;
    if (thread % 4 == 0) lse[row + 8 * r] = softmax.top[r] * SCALE + logf(sum);
  }
  rescale(o, inverse);
}

__device__ inline void consume(const Places& at, const CUtensorMap* map_o, float* lse, int first_q,
                               int steps, int group, int thread) {
  float s[64], o[64];
  uint32_t p[32];
  Softmax softmax;
  const uint32_t q = at.q + group * 64 * 128;
  barrier_wait(at.q_full, 0);
  barrier_wait(at.k_full, 0);
  if (group == 1) hand_turn_to(0);
  await_turn(group);
  fence();
  scores(s, q, at.k);
  commit();
  if (group == 0 || steps > 1) hand_turn_to(1 - group);
  wait<0>();
  settle(s);
  if (CAUSAL) hide_future(s, group, thread);
  if (thread == 0) barrier_arrive(at.k_empty);
  softmax.update(s);
  to_operand(p, s);
#pragma unroll 1
  for (int step = 1; step < steps; ++step) {
    const int stage = step % STAGES, before = (step - 1) % STAGES;
    barrier_wait(at.k_full + 8 * stage, step / STAGES & 1);
    await_turn(group);
    fence();
    scores(s, q, at.k + stage * TILE_BYTES);
    commit();
    barrier_wait(at.v_full + 8 * before, (step - 1) / STAGES & 1);
    fence();
    add_values(o, p, at.v + before * TILE_BYTES, step - 1);
    commit();
    if (group == 0 || step + 1 < steps) hand_turn_to(1 - group);
    wait<1>();
    settle(s);
    if (thread == 0) barrier_arrive(at.k_empty + 8 * stage);
    softmax.update(s);
    wait<0>();
    settle(o);
    if (thread == 0) barrier_arrive(at.v_empty + 8 * before);
    rescale(o, softmax.shrink);
    to_operand(p, s);
  }
  const int last = (steps - 1) % STAGES;
  barrier_wait(at.v_full + 8 * last, (steps - 1) / STAGES & 1);
  fence();
  add_values(o, p, at.v + last * TILE_BYTES, steps - 1);
  commit();
  wait<0>();
  settle(o);
  finish(o, softmax, lse + first_q + group * 64, thread);
  write_output(o, q, map_o, first_q + group * 64, group, thread);
}

__global__ __launch_bounds__(THREADS, 1)
void attention(const __grid_constant__ CUtensorMap map_q, const __grid_constant__ CUtensorMap map_k,
               const __grid_constant__ CUtensorMap map_v, const __grid_constant__ CUtensorMap map_o,
               float* lse) {
  extern __shared__ uint8_t raw[];
  Places at;
  at.q = (shared_address(raw) + 1023) & ~1023u;
  at.k = at.q + TILE_BYTES;
  at.v = at.k + STAGES * TILE_BYTES;
  at.q_full = at.v + STAGES * TILE_BYTES;
  at.k_full = at.q_full + 8;
  at.k_empty = at.k_full + 8 * STAGES;
  at.v_full = at.k_empty + 8 * STAGES;
  at.v_empty = at.v_full + 8 * STAGES;
  const int head = blockIdx.x / STEPS, first_k = head * LENGTH;
  const int tile = STEPS - 1 - blockIdx.x % STEPS;  // the longest first where the mask is causal
  const int first_q = first_k + tile * TILE, steps = CAUSAL ? tile + 1 : STEPS;
  const int group = threadIdx.x / 128;
  if (threadIdx.x == 0) {
    barrier_init(at.q_full, 1);
    for (int s = 0; s < STAGES; ++s) {
      barrier_init(at.k_full + 8 * s, 1), barrier_init(at.k_empty + 8 * s, 2);
      barrier_init(at.v_full + 8 * s, 1), barrier_init(at.v_empty + 8 * s, 2);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 24;");
    if (threadIdx.x == 0) produce(at, &map_q, &map_k, &map_v, first_q, first_k, steps);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 240;");
    consume(at, &map_o, lse, first_q, steps, group - 1, threadIdx.x % 128);
  }
}

using Encode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                            const cuuint64_t*, const cuuint32_t*, const cuuint32_t*,
                            CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion,
                            CUtensorMapFloatOOBfill);

Encode encoder() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult state;
  cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault,
                                   &state);
  return reinterpret_cast<Encode>(found);
}

bool describe(CUtensorMap* map, const void* base, uint32_t box_rows) {
  static const Encode encode = encoder();
  const cuuint64_t size[2] = {DIM, ROWS}, pitch[1] = {DIM * 2};
  const cuuint32_t box[2] = {64, box_rows}, stride[2] = {1, 1};
  return encode && encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<void*>(base), size,
                          pitch, box, stride, CU_TENSOR_MAP_INTERLEAVE_NONE,
                          CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                          CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

}  // namespace

extern "C" void run(const __nv_bfloat16* q, const __nv_bfloat16* k, const __nv_bfloat16* v,
                    __nv_bfloat16* o, float* lse, cudaStream_t stream) {
  static const cudaError_t allowed =
      cudaFuncSetAttribute(attention, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM_BYTES);
  CUtensorMap map_q, map_k, map_v, map_o;
  if (allowed != cudaSuccess || !describe(&map_q, q, TILE) || !describe(&map_k, k, TILE) ||
      !describe(&map_v, v, TILE) || !describe(&map_o, o, 64)) {
    std::fprintf(stderr, "attention: no shared memory of that size, or a tensor map was refused\n");
    return;
  }
  attention<<<ROWS / TILE, THREADS, SMEM_BYTES, stream>>>(map_q, map_k, map_v, map_o, lse);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) std::fprintf(stderr, "attention: %s\n", cudaGetErrorString(error));
}
