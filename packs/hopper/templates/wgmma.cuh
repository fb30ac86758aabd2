// wgmma: matrix products of a warpgroup on the tensor cores, asynchronous. D[64, N] (float,
// registers) = or += A[64, K] * B[N, K]^T with K = 16 (bf16, f16) or 32 (e4m3). All functions: all
// 128 threads of a warpgroup (4 warps, the first one's index a multiple of 4), converged, unless
// said otherwise.
#include <cstdint>

namespace ptx {

// Order of use: write operands -> wgmma_fence -> wgmma_ss / wgmma_rs ... -> wgmma_commit -> other
// work -> wgmma_wait<0> -> wgmma_settle(d) -> read d. Between fence and wait nobody touches d, nor
// the A registers.

// Before the first wgmma, and again whenever registers of d or A were written by other
// instructions.
__device__ inline void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

// Closes the group of products issued so far.
__device__ inline void wgmma_commit() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
}

// Waits until at most PENDING (0..7) of the newest groups are under way. Groups finish in order.
template <int PENDING>
__device__ inline void wgmma_wait() {
  static_assert(PENDING >= 0 && PENDING <= 7, "0..7");
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Costs nothing: keeps the compiler from moving reads of registers before the wait above it.
template <int COUNT>
__device__ inline void wgmma_settle(float (&d)[COUNT]) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

template <int COUNT>
__device__ inline void wgmma_settle(uint32_t (&a)[COUNT]) {
#pragma unroll
  for (int i = 0; i < COUNT; ++i) asm volatile("" : "+r"(a[i])::"memory");
}

// Which element of the 64 x N tile d[i] of thread `thread` (0..127 in the warpgroup) is.
__device__ inline int acc_row(int thread, int i) {
  return 16 * (thread / 32) + (thread % 32) / 4 + 8 * ((i >> 1) & 1);
}

__device__ inline int acc_column(int thread, int i) {
  return 8 * (i / 4) + 2 * (thread % 4) + (i & 1);
}

// Descriptor of an operand in shared memory from its parts; 64 bits in a register, any thread.
//   bits 0-13: address / 16, 16-29: LBO / 16, 32-45: SBO / 16, 49-51: base offset (0),
//   62-63: swizzle code (0 none, 1 128 bytes, 2 64 bytes, 3 32 bytes)
// The swizzle's pattern starts at multiples of 8 rows (1024, 512 or 256 bytes): align the tile so.
template <int SWIZZLE_BYTES>
__device__ inline uint64_t wgmma_descriptor(uint32_t address, uint32_t lbo_bytes,
                                            uint32_t sbo_bytes) {
  constexpr int S = SWIZZLE_BYTES;
  static_assert(S == 0 || S == 32 || S == 64 || S == 128, "0, 32, 64 or 128");
  constexpr uint64_t CODE = S == 128 ? 1 : S == 64 ? 2 : S == 32 ? 3 : 0;
  return (uint64_t(address & 0x3FFFF) >> 4) | (uint64_t(lbo_bytes >> 4) << 16) |
         (uint64_t(sbo_bytes >> 4) << 32) | (CODE << 62);
}

// K-major operand (K contiguous) as the TMA writes it with box {SWIZZLE_BYTES / element bytes,
// rows}: rows of SWIZZLE_BYTES bytes, 8 rows form one pattern. Next K step (32 bytes): address + 32
// while inside the row; then the next panel. Rows r0, a multiple of 8: address + r0 *
// SWIZZLE_BYTES.
template <int SWIZZLE_BYTES = 128>
__device__ inline uint64_t k_major(uint32_t address) {
  static_assert(SWIZZLE_BYTES != 0, "without swizzle use k_major_plain");
  return wgmma_descriptor<SWIZZLE_BYTES>(address, 16, 8 * SWIZZLE_BYTES);
}

// K-major without swizzle: 8 rows x 16 bytes lie together in 128 bytes ("core matrix"). lbo_bytes:
// from one core matrix to the next along K; sbo_bytes: to the next 8 rows. Next K step: address + 2
// * lbo.
__device__ inline uint64_t k_major_plain(uint32_t address, uint32_t lbo_bytes, uint32_t sbo_bytes) {
  return wgmma_descriptor<0>(address, lbo_bytes, sbo_bytes);
}

// MN-major 16-bit operand (rows of A or of B^T contiguous), as the TMA writes it with box
// {SWIZZLE_BYTES / 2, k}: k rows of SWIZZLE_BYTES bytes make a panel of SWIZZLE_BYTES / 2 values of
// M or N. panel_bytes: from one panel to the next. Next K step (16 k): address + 16 *
// SWIZZLE_BYTES. The product must be told: TRANS_A = 1 or TRANS_B = 1.
template <int SWIZZLE_BYTES = 128>
__device__ inline uint64_t mn_major(uint32_t address, uint32_t panel_bytes) {
  static_assert(SWIZZLE_BYTES != 0, "without swizzle use mn_major_plain");
  return wgmma_descriptor<SWIZZLE_BYTES>(address, panel_bytes, 8 * SWIZZLE_BYTES);
}

// MN-major without swizzle: core matrix = 8 k x 8 values of M or N, 128 bytes, a row per k.
// mn_bytes: to the next 8 of M or N; k_bytes: to the next 8 k. Next K step: address + 2 * k_bytes.
__device__ inline uint64_t mn_major_plain(uint32_t address, uint32_t mn_bytes, uint32_t k_bytes) {
  return wgmma_descriptor<0>(address, k_bytes, mn_bytes);
}

// The descriptor `bytes` further on (a multiple of 16): cheaper than building it again.
__device__ inline uint64_t advance(uint64_t descriptor, uint32_t bytes) {
  return descriptor + (bytes >> 4);
}

enum class Input { BF16, F16, E4M3 };

// Register names %0.. and accumulators d[0].. by count; the seven names after them are the
// operands.
#define PTX_R4 "%0, %1, %2, %3"
#define PTX_R8 PTX_R4 ", %4, %5, %6, %7"
#define PTX_R16 PTX_R8 ", %8, %9, %10, %11, %12, %13, %14, %15"
#define PTX_R32 PTX_R16 ", " \
  "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define PTX_R48 PTX_R32 ", " \
  "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47"
#define PTX_R64 PTX_R48 ", " \
  "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#define PTX_R96 PTX_R64 ", " \
  "%64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, " \
  "%81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95"
#define PTX_R128 PTX_R96 ", " \
  "%96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, " \
  "%111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, " \
  "%125, %126, %127"
#define PTX_D(i) "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3])
#define PTX_DD(i) PTX_D(i), PTX_D(i + 4), PTX_D(i + 8), PTX_D(i + 12)
#define PTX_D4 PTX_D(0)
#define PTX_D8 PTX_D(0), PTX_D(4)
#define PTX_D16 PTX_DD(0)
#define PTX_D32 PTX_D16, PTX_DD(16)
#define PTX_D48 PTX_D32, PTX_DD(32)
#define PTX_D64 PTX_D48, PTX_DD(48)
#define PTX_D96 PTX_D64, PTX_DD(64), PTX_DD(80)
#define PTX_D128 PTX_D96, PTX_DD(96), PTX_DD(112)
#define PTX_SHAPES(MMA) \
  if constexpr (N == 8) MMA("8", PTX_R4, PTX_D4, "%4", "%5", "%6", "%7", "%8", "%9", "%10"); \
  if constexpr (N == 16) MMA("16", PTX_R8, PTX_D8, "%8", "%9", "%10", "%11", "%12", "%13", "%14"); \
  if constexpr (N == 32) \
    MMA("32", PTX_R16, PTX_D16, "%16", "%17", "%18", "%19", "%20", "%21", "%22"); \
  if constexpr (N == 64) \
    MMA("64", PTX_R32, PTX_D32, "%32", "%33", "%34", "%35", "%36", "%37", "%38"); \
  if constexpr (N == 96) \
    MMA("96", PTX_R48, PTX_D48, "%48", "%49", "%50", "%51", "%52", "%53", "%54"); \
  if constexpr (N == 128) \
    MMA("128", PTX_R64, PTX_D64, "%64", "%65", "%66", "%67", "%68", "%69", "%70"); \
  if constexpr (N == 192) \
    MMA("192", PTX_R96, PTX_D96, "%96", "%97", "%98", "%99", "%100", "%101", "%102"); \
  if constexpr (N == 256) \
    MMA("256", PTX_R128, PTX_D128, "%128", "%129", "%130", "%131", "%132", "%133", "%134");

#define PTX_OPEN(P) "{\n.reg .pred p;\nsetp.ne.b32 p, " P ", 0;\nwgmma.mma_async.sync.aligned.m64n"

// A and B in shared memory. accumulate = 0: d = A B^T; otherwise d += A B^T. TRANS_A / TRANS_B = 1:
// that operand is MN-major (16-bit types only).
#define PTX_SS(N_NAME, REGS, ACC, A, B, P, TA, TB, ...) PTX_SS_(N_NAME, REGS, A, B, P, TA, TB, ACC)
#define PTX_SS_(N_NAME, REGS, A, B, P, TA, TB, ...) \
  if constexpr (INPUT == Input::BF16) \
    asm volatile(PTX_OPEN(P) N_NAME "k16.f32.bf16.bf16 {" REGS "}, " A ", " B ", p, 1, 1, " TA \
                 ", " TB ";\n}" : __VA_ARGS__ \
                 : "l"(a), "l"(b), "r"(accumulate), "n"(TRANS_A), "n"(TRANS_B)); \
  else if constexpr (INPUT == Input::F16) \
    asm volatile(PTX_OPEN(P) N_NAME "k16.f32.f16.f16 {" REGS "}, " A ", " B ", p, 1, 1, " TA ", " \
                 TB ";\n}" : __VA_ARGS__ \
                 : "l"(a), "l"(b), "r"(accumulate), "n"(TRANS_A), "n"(TRANS_B)); \
  else \
    asm volatile(PTX_OPEN(P) N_NAME "k32.f32.e4m3.e4m3 {" REGS "}, " A ", " B ", p, 1, 1;\n}" \
                 : __VA_ARGS__ : "l"(a), "l"(b), "r"(accumulate))
template <int N, Input INPUT = Input::BF16, int TRANS_A = 0, int TRANS_B = 0>
__device__ inline void wgmma_ss(float (&d)[N / 2], uint64_t a, uint64_t b, uint32_t accumulate) {
  static_assert(INPUT != Input::E4M3 || TRANS_A + TRANS_B == 0, "8-bit operands are K-major");
  PTX_SHAPES(PTX_SS)
}

// A in registers, B in shared memory. a[0..3] of thread t, 16-bit types, hold two k each: row
// 16 * (t / 32) + (t % 32) / 4 + 8 * (r % 2), k = 2 * (t % 4) + 8 * (r / 2) and the next (low half
// first): the very layout of an accumulator's d[8 * step + 2 * r] and d[8 * step + 2 * r + 1].
// e4m3: four k each, k = 4 * (t % 4) + 16 * (r / 2) .. + 3, the same row.
#define PTX_RS(N_NAME, REGS, ACC, A0, A1, A2, A3, B, P, TB) \
  PTX_RS_(N_NAME, REGS, A0 ", " A1 ", " A2 ", " A3, B, P, TB, ACC)
#define PTX_RS_(N_NAME, REGS, A, B, P, TB, ...) \
  if constexpr (INPUT == Input::BF16) \
    asm volatile(PTX_OPEN(P) N_NAME "k16.f32.bf16.bf16 {" REGS "}, {" A "}, " B ", p, 1, 1, " TB \
                 ";\n}" : __VA_ARGS__ : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), \
                 "r"(accumulate), "n"(TRANS_B)); \
  else if constexpr (INPUT == Input::F16) \
    asm volatile(PTX_OPEN(P) N_NAME "k16.f32.f16.f16 {" REGS "}, {" A "}, " B ", p, 1, 1, " TB \
                 ";\n}" : __VA_ARGS__ : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), \
                 "r"(accumulate), "n"(TRANS_B)); \
  else \
    asm volatile(PTX_OPEN(P) N_NAME "k32.f32.e4m3.e4m3 {" REGS "}, {" A "}, " B ", p, 1, 1;\n}" \
                 : __VA_ARGS__ : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), \
                 "r"(accumulate))
template <int N, Input INPUT = Input::BF16, int TRANS_B = 0>
__device__ inline void wgmma_rs(float (&d)[N / 2], const uint32_t* a, uint64_t b,
                                uint32_t accumulate) {
  static_assert(INPUT != Input::E4M3 || TRANS_B == 0, "8-bit operands are K-major");
  PTX_SHAPES(PTX_RS)
}

}  // namespace ptx
