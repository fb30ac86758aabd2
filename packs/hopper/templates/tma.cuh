// Tensor Memory Accelerator: tensor maps (host), tensor copies 1D to 5D, bulk copies (device). All
// device functions are for one thread (one of the block, not one of each warp).
// Needs no -lcuda: the driver function is fetched when it is first used.
#include <cstdint>
#include <cstdio>
#include <cuda.h>
#include <cuda_runtime.h>

namespace ptx {

// Host: says on stderr what failed; true when nothing did.
inline bool cuda_ok(cudaError_t error, const char* what) {
  if (error == cudaSuccess) return true;
  std::fprintf(stderr, "%s: %s: %s\n", what, cudaGetErrorName(error), cudaGetErrorString(error));
  return false;
}

// Host: allows `kernel` more than 48 KiB of dynamic shared memory (at most 232448 bytes on Hopper).
// Once per kernel, before the launch, with the launch's own byte count.
template <class Kernel>
inline bool allow_shared_memory(Kernel* kernel, int bytes) {
  return cuda_ok(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                      cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
                 "dynamic shared memory");
}

using TensorMapEncode = CUresult (*)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*,
                                     const cuuint64_t*, const cuuint64_t*, const cuuint32_t*,
                                     const cuuint32_t*, CUtensorMapInterleave, CUtensorMapSwizzle,
                                     CUtensorMapL2promotion, CUtensorMapFloatOOBfill);

// Host: the driver's cuTensorMapEncodeTiled, or null.
inline TensorMapEncode tensor_map_encoder() {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult state;
  const cudaError_t error = cudaGetDriverEntryPointByVersion(
      "cuTensorMapEncodeTiled", &found, 12000, cudaEnableDefault, &state);
  if (!cuda_ok(error, "cuTensorMapEncodeTiled")) return nullptr;
  return state == cudaDriverEntryPointSuccess ? reinterpret_cast<TensorMapEncode>(found) : nullptr;
}

// Host: bytes of a swizzle row: 128, 64, 32, or 0 for none.
inline uint32_t swizzle_bytes(CUtensorMapSwizzle swizzle) {
  return swizzle == CU_TENSOR_MAP_SWIZZLE_NONE ? 0u : 16u << static_cast<int>(swizzle);
}

// Host: describes a tensor in global memory for the TMA. Index 0 is the innermost (contiguous)
// dimension. size[RANK] in elements, box[RANK] = elements moved by one copy, pitch[RANK - 1] =
// bytes between neighbours of dimension 1, 2, ... Elements outside are read as zero and never
// written. Returns false, with the reason on stderr, when a rule is broken.
template <int RANK>
inline bool make_tensor_map(CUtensorMap* map, CUtensorMapDataType type, uint32_t element_bytes,
                            const void* base, const uint64_t (&size)[RANK], const uint64_t* pitch,
                            const uint32_t (&box)[RANK], CUtensorMapSwizzle swizzle) {
  static_assert(RANK >= 1 && RANK <= 5, "tensor maps have 1 to 5 dimensions");
  cuuint64_t sizes[RANK], pitches[RANK] = {};
  cuuint32_t boxes[RANK], steps[RANK];
  const uint32_t row = box[0] * element_bytes, limit = swizzle_bytes(swizzle);
  const char* broken = nullptr;
  if (reinterpret_cast<uintptr_t>(base) % 16) broken = "the base address is no multiple of 16";
  if (row % 16) broken = "box[0] is no multiple of 16 bytes";
  if (limit && row > limit) broken = "box[0] is wider than the swizzle";
  for (int i = 0; i < RANK; ++i) {
    sizes[i] = size[i], boxes[i] = box[i], steps[i] = 1;
    if (box[i] < 1 || box[i] > 256) broken = "a box side is not in 1..256";
    if (size[i] < 1 || size[i] > (uint64_t(1) << 32)) broken = "a size is not in 1..2^32";
    if (i + 1 < RANK) pitches[i] = pitch[i];
    if (i + 1 < RANK && pitch[i] % 16) broken = "a pitch is no multiple of 16 bytes";
  }
  static const TensorMapEncode encode = tensor_map_encoder();
  if (!broken && !encode) broken = "this driver has no cuTensorMapEncodeTiled";
  if (!broken && encode(map, type, RANK, const_cast<void*>(base), sizes, pitches, boxes, steps,
                        CU_TENSOR_MAP_INTERLEAVE_NONE, swizzle, CU_TENSOR_MAP_L2_PROMOTION_L2_256B,
                        CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) != CUDA_SUCCESS)
    broken = "the driver refused it";
  if (broken) std::fprintf(stderr, "tensor map of rank %d, box[0] %u: %s\n", RANK, box[0], broken);
  return !broken;
}

// Host: the usual case, a row-major bf16 matrix [rows, columns] with `pitch_bytes` between rows,
// read in boxes of box_rows x box_columns (64 columns fill the 128-byte swizzle).
inline bool make_bf16_map(CUtensorMap* map, const void* base, uint64_t rows, uint64_t columns,
                          uint64_t pitch_bytes, uint32_t box_rows, uint32_t box_columns,
                          CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B) {
  return make_tensor_map<2>(map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, 2, base, {columns, rows},
                            &pitch_bytes, {box_columns, box_rows}, swizzle);
}

// Device: a map must be a `const __grid_constant__ CUtensorMap` kernel parameter (pass &map), or
// lie in constant or global memory, 64-byte aligned. Fetches it early.
__device__ inline void prefetch_tensor_map(const CUtensorMap* map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

// Coordinates: a braced list of int, in elements, innermost first, as long as the map's rank:
// tma_load(dst, &map, bar, {x, y}). Two mistakes stop the kernel with "illegal instruction": an
// innermost coordinate that is no multiple of 16 bytes, and a store or reduction that begins below
// zero. Loads may begin below zero, everything may reach over the end.
#define PTX_C1 "r"(at[0])
#define PTX_C2 PTX_C1, "r"(at[1])
#define PTX_C3 PTX_C2, "r"(at[2])
#define PTX_C4 PTX_C3, "r"(at[3])
#define PTX_C5 PTX_C4, "r"(at[4])
#define PTX_BY_RANK(COPY) \
  static_assert(RANK >= 1 && RANK <= 5, "1 to 5 coordinates"); \
  if constexpr (RANK == 1) COPY("1d", "{%4}", PTX_C1); \
  if constexpr (RANK == 2) COPY("2d", "{%4, %5}", PTX_C2); \
  if constexpr (RANK == 3) COPY("3d", "{%4, %5, %6}", PTX_C3); \
  if constexpr (RANK == 4) COPY("4d", "{%4, %5, %6, %7}", PTX_C4); \
  if constexpr (RANK == 5) COPY("5d", "{%4, %5, %6, %7, %8}", PTX_C5);

// Global -> this block's shared memory. dst: 128-byte aligned, 1024 with 128-byte swizzle (512 with
// 64, 256 with 32). Completion: box bytes on `bar`; wait for its phase before reading.
#define PTX_LOAD(RANK_NAME, LIST, ...) \
  asm volatile("cp.async.bulk.tensor." RANK_NAME \
               ".shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, " LIST "], [%2];" \
               ::"r"(dst), "l"(map), "r"(bar), "n"(0), __VA_ARGS__ : "memory")
template <int RANK>
__device__ inline void tma_load(uint32_t dst, const CUtensorMap* map, uint32_t bar,
                                const int (&at)[RANK]) {
  PTX_BY_RANK(PTX_LOAD)
}

// Global -> the same place dst in every block of the cluster whose bit is set in `blocks`. Each
// receiving block's own barrier at the place `bar` gets the box bytes, so each must expect them.
// Issue only when the buffer is free in all of them.
#define PTX_MULTICAST(RANK_NAME, LIST, ...) \
  asm volatile("cp.async.bulk.tensor." RANK_NAME \
               ".shared::cluster.global.mbarrier::complete_tx::bytes" \
               ".multicast::cluster [%0], [%1, " LIST "], [%2], %3;" \
               ::"r"(dst), "l"(map), "r"(bar), "h"(blocks), __VA_ARGS__ : "memory")
template <int RANK>
__device__ inline void tma_load_multicast(uint32_t dst, const CUtensorMap* map, uint32_t bar,
                                          const int (&at)[RANK], uint16_t blocks) {
  PTX_BY_RANK(PTX_MULTICAST)
}

// Shared -> global. Before: fence_async_shared by the writers and a barrier. After: bulk_commit,
// then bulk_wait_read before src is written again, bulk_wait before the block ends or the result is
// needed.
#define PTX_STORE(RANK_NAME, LIST, ...) \
  asm volatile("cp.async.bulk.tensor." RANK_NAME \
               ".global.shared::cta.bulk_group [%1, " LIST "], [%0];" \
               ::"r"(src), "l"(map), "n"(0), "n"(0), __VA_ARGS__ : "memory")
template <int RANK>
__device__ inline void tma_store(const CUtensorMap* map, uint32_t src, const int (&at)[RANK]) {
  PTX_BY_RANK(PTX_STORE)
}

// As tma_store, but adds to what is in global memory; each element atomically, in no fixed order,
// so that floating-point sums may differ between runs.
#define PTX_REDUCE(RANK_NAME, LIST, ...) \
  asm volatile("cp.reduce.async.bulk.tensor." RANK_NAME \
               ".global.shared::cta.add.tile.bulk_group [%1, " LIST "], [%0];" \
               ::"r"(src), "l"(map), "n"(0), "n"(0), __VA_ARGS__ : "memory")
template <int RANK>
__device__ inline void tma_reduce_add(const CUtensorMap* map, uint32_t src, const int (&at)[RANK]) {
  PTX_BY_RANK(PTX_REDUCE)
}

// Global -> L2 cache only; nothing to wait for.
#define PTX_PREFETCH(RANK_NAME, LIST, ...) \
  asm volatile("cp.async.bulk.prefetch.tensor." RANK_NAME \
               ".L2.global.tile [%1, " LIST "];" \
               ::"n"(0), "l"(map), "n"(0), "n"(0), __VA_ARGS__ : "memory")
template <int RANK>
__device__ inline void tma_prefetch(const CUtensorMap* map, const int (&at)[RANK]) {
  PTX_BY_RANK(PTX_PREFETCH)
}

// Contiguous copies without a map: addresses and byte count are multiples of 16. No swizzle.
__device__ inline void bulk_load(uint32_t dst, const void* src, uint32_t bytes, uint32_t bar) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes"
      " [%0], [%1], %2, [%3];" ::"r"(dst),
      "l"(__cvta_generic_to_global(src)), "r"(bytes), "r"(bar)
      : "memory");
}

__device__ inline void bulk_load_multicast(uint32_t dst, const void* src, uint32_t bytes,
                                           uint32_t bar, uint16_t blocks) {
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
      " [%0], [%1], %2, [%3], %4;" ::"r"(dst),
      "l"(__cvta_generic_to_global(src)), "r"(bytes), "r"(bar), "h"(blocks)
      : "memory");
}

// Own shared memory -> a peer's; dst and bar are addresses from map_to_block, both in the same
// peer.
__device__ inline void bulk_copy_to_block(uint32_t dst, uint32_t src, uint32_t bytes,
                                          uint32_t bar) {
  asm volatile(
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
      " [%0], [%1], %2, [%3];" ::"r"(dst),
      "r"(src), "r"(bytes), "r"(bar)
      : "memory");
}

__device__ inline void bulk_store(void* dst, uint32_t src, uint32_t bytes) {
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                   __cvta_generic_to_global(dst)),
               "r"(src), "r"(bytes)
               : "memory");
}

// Adds floats in shared memory to floats in global memory, element by element, atomically.
__device__ inline void bulk_reduce_add(float* dst, uint32_t src, uint32_t bytes) {
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(
                   __cvta_generic_to_global(dst)),
               "r"(src), "r"(bytes)
               : "memory");
}

__device__ inline void bulk_prefetch(const void* src, uint32_t bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(__cvta_generic_to_global(src)),
               "r"(bytes)
               : "memory");
}

// Groups of stores and reductions belong to the thread that issued them: the same thread commits
// and waits. PENDING = how many of the newest groups may still be under way.
__device__ inline void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Waits until the groups have finished reading shared memory (the source may be written again).
template <int PENDING = 0>
__device__ inline void bulk_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

// Waits until the groups are complete: their writes to global memory are done.
template <int PENDING = 0>
__device__ inline void bulk_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(PENDING) : "memory");
}

}  // namespace ptx
