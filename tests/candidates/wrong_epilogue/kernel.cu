// The Hopper GEMM (TMA, wgmma) with a slip in its epilogue: 1 column of 32 has rows swapped in pairs.
#include <cstdint>
#include <cstdio>
#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

namespace {

constexpr int M = 8192, N = 7168, K = 5120;
constexpr int TILE_M = 128, TILE_N = 256, TILE_K = 64;
constexpr int STAGES = 4, CLUSTER = 2, GROUP_M = 8;
constexpr int THREADS = 384;
constexpr int A_BYTES = TILE_M * TILE_K * 2, B_BYTES = TILE_N * TILE_K * 2;
constexpr int STAGE_BYTES = A_BYTES + B_BYTES;
constexpr int C_BUFFER_BYTES = 64 * 64 * 2;
constexpr int C_BYTES = 2 * 2 * C_BUFFER_BYTES;
constexpr int SMEM_BYTES = 1024 + STAGES * STAGE_BYTES + C_BYTES + 2 * STAGES * 8;
constexpr int CLUSTER_ROWS = M / (TILE_M * CLUSTER), COLUMNS = N / TILE_N;
constexpr int CLUSTER_TILES = CLUSTER_ROWS * COLUMNS;
constexpr int STEPS = K / TILE_K;
static_assert(CLUSTER_ROWS % GROUP_M == 0 && N % TILE_N == 0 && K % TILE_K == 0, "no partial tiles");

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

// Without `.release.cluster`: that spelling puts a device-wide memory barrier before every arrival, and
// the reads that it would order are the tensor core's own, which wgmma.wait_group has already finished.
__device__ inline void barrier_arrive_at(uint32_t bar, uint32_t block) {
  asm volatile(
      "{\n.reg .b32 remote;\n"
      "mapa.shared::cluster.u32 remote, %0, %1;\n"
      "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(bar), "r"(block)
      : "memory");
}

__device__ inline void barrier_wait(uint32_t bar, uint32_t parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "again:\n"
      "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n}" ::"r"(bar), "r"(parity)
      : "memory");
}

__device__ inline void load_tile(uint32_t dst, const CUtensorMap* map, int x, int y, uint32_t bar) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3}], [%4];" ::"r"(dst), "l"(map), "r"(x), "r"(y), "r"(bar)
      : "memory");
}

__device__ inline void load_tile_for_all(uint32_t dst, const CUtensorMap* map, int x, int y,
                                         uint32_t bar, uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes"
      ".multicast::cluster [%0], [%1, {%2, %3}], [%4], %5;" ::"r"(dst), "l"(map), "r"(x), "r"(y),
      "r"(bar), "h"(blocks)
      : "memory");
}

__device__ inline void store_tile(const CUtensorMap* map, uint32_t src, int x, int y) {
  asm volatile(
      "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];\n"
      "cp.async.bulk.commit_group;" ::"l"(map), "r"(x), "r"(y), "r"(src)
      : "memory");
}

// Descriptor of a K-major bf16 operand with 128-byte swizzle: 8 rows of 128 bytes form 1024 bytes.
__device__ inline uint64_t operand(uint32_t address) {
  return (uint64_t(address & 0x3FFFF) >> 4) | (uint64_t(1) << 16) | (uint64_t(1024 >> 4) << 32) |
         (uint64_t(1) << 62);
}

#define ACC4(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define ACC16(i) ACC4(i), ACC4(i + 4), ACC4(i + 8), ACC4(i + 12)
#define ACC64(i) ACC16(i), ACC16(i + 16), ACC16(i + 32), ACC16(i + 48)

// 64 x 256 x 16 by one warpgroup; thread t of it holds d[4j..4j+3] = rows r, r, r+8, r+8 and columns
// c, c+1, c, c+1 with r = 16 * warp + lane / 4 and c = 8j + 2 * (lane % 4).
__device__ inline void multiply(float (&d)[128], uint64_t a, uint64_t b, int accumulate) {
  asm volatile(
      "{\n.reg .pred p;\nsetp.ne.b32 p, %130, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {"
      "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, "
      "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, "
      "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, "
      "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, "
      "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, "
      "%80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, "
      "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, "
      "%112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127"
      "}, %128, %129, p, 1, 1, 0, 0;\n}"
      : ACC64(0), ACC64(64)
      : "l"(a), "l"(b), "r"(accumulate));
}

__device__ inline uint32_t pack(float low, float high) {
  __nv_bfloat162 pair = __floats2bfloat162_rn(low, high);
  return *reinterpret_cast<uint32_t*>(&pair);
}

struct Tile {
  int row, column;
};

// Walks columns inside bands of GROUP_M cluster rows: a wave's operands then stay in the L2 cache.
__device__ inline Tile tile_at(int index, int rank) {
  const int band = index / (GROUP_M * COLUMNS), inside = index % (GROUP_M * COLUMNS);
  const int cluster_row = band * GROUP_M + inside % GROUP_M;
  return {(cluster_row * CLUSTER + rank) * TILE_M, (inside / GROUP_M) * TILE_N};
}

struct Ring {
  int stage = 0;
  uint32_t phase = 0;
  __device__ void advance() {
    if (++stage == STAGES) stage = 0, phase ^= 1;
  }
};

__device__ inline void produce(const CUtensorMap* map_a, const CUtensorMap* map_b, uint32_t tiles,
                               uint32_t full, uint32_t empty, int rank) {
  Ring ring;
  for (int t = blockIdx.x / CLUSTER; t < CLUSTER_TILES; t += gridDim.x / CLUSTER) {
    const Tile tile = tile_at(t, rank);
    for (int step = 0; step < STEPS; ++step, ring.advance()) {
      const uint32_t a = tiles + ring.stage * STAGE_BYTES, bar = full + 8 * ring.stage;
      const uint32_t half = rank * (B_BYTES / CLUSTER);
      barrier_wait(empty + 8 * ring.stage, ring.phase ^ 1);
      barrier_expect(bar, STAGE_BYTES);
      load_tile(a, map_a, step * TILE_K, tile.row, bar);
      load_tile_for_all(a + A_BYTES + half, map_b, step * TILE_K,
                        tile.column + rank * (TILE_N / CLUSTER), bar, (1 << CLUSTER) - 1);
    }
  }
}

// One 64 x 64 piece of C: registers -> swizzled shared memory -> TMA store.
__device__ inline void store_piece(const float (&d)[128], int piece, const CUtensorMap* map_c,
                                   uint32_t buffer, Tile tile, int group, int thread) {
  const int lane = thread % 32, row = (thread / 32) * 16 + lane % 16;
  if (thread == 0) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
  asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory");
#pragma unroll
  for (int j = 0; j < 8; j += 2) {
    const int i = 4 * (piece * 8 + j);
    const uint32_t at = buffer + row * 128 + (((j + lane / 16) ^ (row & 7)) << 4);
    // The mistake: in the last 8 columns the rows r and r + 8 change places.
    const int low = piece == 3 && j == 6 ? 6 : 4, high = piece == 3 && j == 6 ? 4 : 6;
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(at),
                 "r"(pack(d[i], d[i + 1])), "r"(pack(d[i + 2], d[i + 3])),
                 "r"(pack(d[i + low], d[i + low + 1])), "r"(pack(d[i + high], d[i + high + 1]))
                 : "memory");
  }
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  asm volatile("bar.sync %0, 128;" ::"r"(1 + group) : "memory");
  if (thread == 0) store_tile(map_c, buffer, tile.column + piece * 64, tile.row + group * 64);
}

__device__ inline void release(uint32_t empty, int stage, int thread) {
  if (thread < CLUSTER) barrier_arrive_at(empty + 8 * stage, thread);
}

__device__ inline void consume(const CUtensorMap* map_c, uint32_t tiles, uint32_t staging,
                               uint32_t full, uint32_t empty, int rank, int group, int thread) {
  Ring ring;
  float d[128];
  for (int t = blockIdx.x / CLUSTER; t < CLUSTER_TILES; t += gridDim.x / CLUSTER) {
    const Tile tile = tile_at(t, rank);
    int previous = 0;
    for (int step = 0; step < STEPS; ++step) {
      barrier_wait(full + 8 * ring.stage, ring.phase);
      const uint32_t a = tiles + ring.stage * STAGE_BYTES;
      const uint64_t lhs = operand(a + group * (A_BYTES / 2)), rhs = operand(a + A_BYTES);
      asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
      for (int k = 0; k < TILE_K / 16; ++k) multiply(d, lhs + 2 * k, rhs + 2 * k, step | k);
      asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
      if (step > 0) {
        asm volatile("wgmma.wait_group.sync.aligned 1;" ::: "memory");
        release(empty, previous, thread);
      }
      previous = ring.stage;
      ring.advance();
    }
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
    release(empty, previous, thread);
#pragma unroll
    for (int i = 0; i < 128; ++i) asm volatile("" : "+f"(d[i])::"memory");
#pragma unroll
    for (int piece = 0; piece < 4; ++piece) {
      const uint32_t buffer = staging + (group * 2 + piece % 2) * C_BUFFER_BYTES;
      store_piece(d, piece, map_c, buffer, tile, group, thread);
    }
  }
  if (thread == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

__device__ inline void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release;\nbarrier.cluster.wait.acquire;" ::: "memory");
}

__global__ __cluster_dims__(CLUSTER, 1, 1) __launch_bounds__(THREADS, 1)
void gemm(const __grid_constant__ CUtensorMap map_a, const __grid_constant__ CUtensorMap map_b,
          const __grid_constant__ CUtensorMap map_c) {
  extern __shared__ uint8_t raw[];
  const uint32_t tiles = (shared_address(raw) + 1023) & ~1023u;
  const uint32_t staging = tiles + STAGES * STAGE_BYTES;
  const uint32_t full = staging + C_BYTES, empty = full + 8 * STAGES;
  const int rank = blockIdx.x % CLUSTER;
  const int group = __shfl_sync(0xffffffff, threadIdx.x / 128, 0);  // known to be uniform
  if (threadIdx.x == 0) {
    for (int s = 0; s < STAGES; ++s) {
      barrier_init(full + 8 * s, 1);
      barrier_init(empty + 8 * s, 2 * CLUSTER);
    }
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  cluster_barrier();
  if (group == 0) {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 40;");
    if (threadIdx.x == 0) produce(&map_a, &map_b, tiles, full, empty, rank);
  } else {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 232;");
    consume(&map_c, tiles, staging, full, empty, rank, group - 1, threadIdx.x % 128);
  }
  cluster_barrier();  // no block leaves while its partner may still write into it
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

// Row-major [rows, columns] bf16, read or written in boxes of box_rows x 64.
bool describe(CUtensorMap* map, const void* base, uint64_t rows, uint64_t columns, uint32_t box_rows) {
  static const Encode encode = encoder();
  const cuuint64_t size[2] = {columns, rows}, pitch[1] = {columns * 2};
  const cuuint32_t box[2] = {64, box_rows}, stride[2] = {1, 1};
  return encode && encode(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, const_cast<void*>(base), size,
                          pitch, box, stride, CU_TENSOR_MAP_INTERLEAVE_NONE,
                          CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                          CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

int blocks() {
  int device = 0, count = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, device);
  cudaFuncSetAttribute(gemm, cudaFuncAttributeMaxDynamicSharedMemorySize, SMEM_BYTES);
  return count / CLUSTER * CLUSTER;
}

}  // namespace

// The tensor maps are made for each call: the addresses may differ from the last call's.
extern "C" void run(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c,
                    cudaStream_t stream) {
  static const int grid = blocks();
  CUtensorMap map_a, map_b, map_c;
  if (!describe(&map_a, a, M, K, TILE_M) || !describe(&map_b, b, N, K, TILE_N / CLUSTER) ||
      !describe(&map_c, c, M, N, 64)) {
    std::fprintf(stderr, "gemm: the driver refused a tensor map\n");
    return;
  }
  gemm<<<grid, THREADS, SMEM_BYTES, stream>>>(map_a, map_b, map_c);
  const cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) std::fprintf(stderr, "gemm: %s\n", cudaGetErrorString(error));
}
