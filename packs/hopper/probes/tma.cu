// Probes of templates/tma.cuh: tensor copies of every rank, swizzle, multicast, bulk copies, host
// side.
#include "probe.cuh"
#include "../templates/mbarrier.cuh"
#include "../templates/sync.cuh"
#include "../templates/tma.cuh"

using namespace ptx;

constexpr uint64_t SIZE[5] = {20, 6, 5, 4, 3};
constexpr uint32_t BOX[5] = {8, 2, 2, 2, 2};
constexpr int FROM[5] = {-4, 1, 4, 2, 2}, TO[5] = {4, 5, 1, 3, 1};  // some of it outside

struct Place {
  int at[5];
};

template <int RANK>
__host__ __device__ constexpr int box_count() {
  int count = 8;
  for (int i = 1; i < RANK; ++i) count *= 2;
  return count;
}

template <int RANK>
__global__ void tma_rank(const __grid_constant__ CUtensorMap in,
                         const __grid_constant__ CUtensorMap copy,
                         const __grid_constant__ CUtensorMap sum, Place from, Place to,
                         float* seen) {
  __shared__ alignas(128) float values[128];
  __shared__ alignas(8) uint64_t object;
  const uint32_t bar = smem_address(&object), at = smem_address(values);
  int source[RANK], target[RANK];
  for (int i = 0; i < RANK; ++i) source[i] = from.at[i], target[i] = to.at[i];
  mbarrier_init(bar, 1);
  fence_mbarrier_init();
  prefetch_tensor_map(&in);
  tma_prefetch(&in, source);
  mbarrier_arrive_expect(bar, box_count<RANK>() * 4);
  tma_load(at, &in, bar, source);
  mbarrier_wait(bar, 0);
  for (int i = 0; i < box_count<RANK>(); ++i) seen[i] = values[i];
  tma_store(&copy, at, target);
  tma_reduce_add(&sum, at, target);
  bulk_commit();
  tma_reduce_add(&sum, at, target);
  bulk_commit();
  bulk_wait_read<1>();
  bulk_wait_read();
  bulk_wait<1>();
  bulk_wait();
}

// Block 0 sends a box to both blocks; block 1 sends another to block 0 only.
template <int RANK>
__global__ __cluster_dims__(2, 1, 1) void tma_multicast(const __grid_constant__ CUtensorMap in,
                                                        Place from, Place to, float* seen) {
  __shared__ alignas(128) float values[2][128];
  __shared__ alignas(8) uint64_t object;
  const uint32_t bar = smem_address(&object), at = smem_address(values), rank = cluster_rank();
  constexpr int COUNT = box_count<RANK>();
  int source[RANK];
  for (int i = 0; i < RANK; ++i) source[i] = rank ? to.at[i] : from.at[i];
  for (int i = 0; i < 256; ++i) values[i / 128][i % 128] = -1;
  mbarrier_init(bar, 1);
  fence_mbarrier_init();
  fence_async_shared();
  mbarrier_arrive_expect(bar, rank ? COUNT * 4 : COUNT * 8);
  cluster_sync();
  tma_load_multicast(at + 512 * rank, &in, bar, source, uint16_t(rank ? 1 : 3));
  mbarrier_wait(bar, 0);
  for (int i = 0; i < 2 * COUNT; ++i) seen[rank * 2 * COUNT + i] = values[i / COUNT][i % COUNT];
  cluster_sync();
}

// Raw bytes of a box as the swizzle leaves them.
__global__ void tma_swizzle(const __grid_constant__ CUtensorMap map, int bytes, uint32_t* seen) {
  __shared__ alignas(1024) uint32_t values[1024];
  __shared__ alignas(8) uint64_t object;
  const uint32_t bar = smem_address(&object);
  mbarrier_init(bar, 1);
  fence_mbarrier_init();
  mbarrier_arrive_expect(bar, bytes);
  tma_load(smem_address(values), &map, bar, {0, 0});
  mbarrier_wait(bar, 0);
  for (int i = 0; i < bytes / 4; ++i) seen[i] = values[i];
}

__global__ void tma_bulk(const float* in, float* copy, float* sum) {
  __shared__ alignas(128) float values[64];
  __shared__ alignas(8) uint64_t object;
  const uint32_t bar = smem_address(&object), at = smem_address(values);
  mbarrier_init(bar, 1);
  fence_mbarrier_init();
  bulk_prefetch(in, 256);
  mbarrier_arrive_expect(bar, 256);
  bulk_load(at, in, 256, bar);
  mbarrier_wait(bar, 0);
  bulk_store(copy, at, 256);
  bulk_reduce_add(sum, at, 256);
  bulk_reduce_add(sum, at, 128);
  bulk_commit();
  bulk_wait_read();
  bulk_wait();
}

// Block 0 multicasts 128 bytes to both; then each copies its own rank's bytes into the other.
__global__ __cluster_dims__(2, 1, 1) void tma_bulk_cluster(const int* in, int* out) {
  __shared__ alignas(128) int values[64];
  __shared__ alignas(8) uint64_t bars[2];
  const uint32_t first = smem_address(&bars[0]), second = smem_address(&bars[1]);
  const uint32_t at = smem_address(values), rank = cluster_rank(), peer = rank ^ 1;
  mbarrier_init(first, 1);
  mbarrier_init(second, 1);
  fence_mbarrier_init();
  mbarrier_arrive_expect(first, 128);
  mbarrier_arrive_expect(second, 128);
  cluster_sync();
  if (rank == 0) bulk_load_multicast(at, in, 128, first, 3);
  mbarrier_wait(first, 0);
  for (int i = 0; i < 32; ++i) values[i] += rank;
  fence_async_shared();
  bulk_copy_to_block(map_to_block(at + 128, peer), at, 128, map_to_block(second, peer));
  mbarrier_wait(second, 0);
  for (int i = 0; i < 64; ++i) out[64 * rank + i] = values[i];
  cluster_sync();
}

__global__ void tma_large_shared(int* out, int bytes) {
  extern __shared__ int values[];
  values[bytes / 4 - 1] = 99;
  __syncthreads();
  *out = values[bytes / 4 - 1];
}

// Index of an element of the tensor, or -1 outside; `inside` counts through the box, innermost
// first.
template <int RANK>
int element(const int (&corner)[5], int inside) {
  int index = 0, stride = 1;
  for (int i = 0; i < RANK; ++i) {
    const int c = corner[i] + inside % int(BOX[i]);
    if (c < 0 || c >= int(SIZE[i])) return -1;
    index += c * stride, stride *= int(SIZE[i]), inside /= int(BOX[i]);
  }
  return index;
}

template <int RANK>
bool describe(CUtensorMap* map, const float* base) {
  uint64_t size[RANK], pitch[5] = {SIZE[0] * 4};
  uint32_t box[RANK];
  for (int i = 0; i < RANK; ++i) size[i] = SIZE[i], box[i] = BOX[i];
  for (int i = 1; i < 5; ++i) pitch[i] = pitch[i - 1] * SIZE[i];
  return make_tensor_map<RANK>(map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, base, size, pitch, box,
                               CU_TENSOR_MAP_SWIZZLE_NONE);
}

Place place(const int (&at)[5]) { return {{at[0], at[1], at[2], at[3], at[4]}}; }

template <int RANK>
size_t tensor_count() {
  size_t count = 1;
  for (int i = 0; i < RANK; ++i) count *= SIZE[i];
  return count;
}

template <int RANK>
std::string rank_copies() {
  const size_t count = tensor_count<RANK>();
  Array<float> in(count), copy(count, -7.f), sum(count, 100.f), seen(box_count<RANK>());
  for (size_t i = 0; i < count; ++i) in[i] = float(i + 1);
  in.push();
  CUtensorMap in_map, copy_map, sum_map;
  if (!describe<RANK>(&in_map, in.data) || !describe<RANK>(&copy_map, copy.data) ||
      !describe<RANK>(&sum_map, sum.data))
    return "the tensor map was refused";
  std::vector<float> expected(box_count<RANK>()), copied = copy.host, summed = sum.host;
  for (int i = 0; i < box_count<RANK>(); ++i) {
    const int from = element<RANK>(FROM, i), to = element<RANK>(TO, i);
    expected[i] = from < 0 ? 0.f : in[from];
    if (to >= 0) copied[to] = expected[i], summed[to] += 2 * expected[i];
  }
  tma_rank<RANK><<<1, 1>>>(in_map, copy_map, sum_map, place(FROM), place(TO), seen.data);
  seen.pull(), copy.pull(), sum.pull();
  return compare(seen.host, expected) + compare(copy.host, copied) + compare(sum.host, summed);
}

template <int RANK>
std::string multicast() {
  constexpr int COUNT = box_count<RANK>();
  Array<float> in(tensor_count<RANK>()), seen(4 * COUNT);
  for (size_t i = 0; i < in.host.size(); ++i) in[i] = float(i + 1);
  in.push();
  CUtensorMap map;
  if (!describe<RANK>(&map, in.data)) return "the tensor map was refused";
  std::vector<float> expected(4 * COUNT, -1.f);
  for (int i = 0; i < COUNT; ++i) {
    const int from = element<RANK>(FROM, i), to = element<RANK>(TO, i);
    expected[i] = expected[2 * COUNT + i] = from < 0 ? 0.f : in[from];
    expected[COUNT + i] = to < 0 ? 0.f : in[to];
  }
  tma_multicast<RANK><<<2, 1>>>(map, place(FROM), place(TO), seen.data);
  seen.pull();
  // The second buffer begins 512 bytes after the first; seen packs COUNT values of each.
  return compare(seen.host, expected);
}

std::string swizzles() {
  Array<uint16_t> in(32 * 64);
  for (int i = 0; i < 32 * 64; ++i) in[i] = uint16_t(i);
  in.push();
  std::string wrong;
  for (int span : {0, 32, 64, 128}) {
    const auto mode = CUtensorMapSwizzle(span == 128 ? 3 : span == 64 ? 2 : span == 32 ? 1 : 0);
    const uint32_t row = span ? span : 128;
    if (swizzle_bytes(mode) != uint32_t(span)) return text("swizzle_bytes of mode %d", int(mode));
    CUtensorMap map;
    if (!make_bf16_map(&map, in.data, 32, 64, 128, 32, row / 2, mode)) return "refused";
    Array<uint32_t> seen(1024);
    tma_swizzle<<<1, 1>>>(map, int(32 * row), seen.data);
    seen.pull();
    std::vector<uint16_t> raw(32 * row / 2), expected(32 * row / 2);
    for (uint32_t r = 0; r < 32; ++r)
      for (uint32_t c = 0; c < row / 2; ++c) {
        uint32_t chunk = c / 8;  // 16-byte chunks of a row trade places by the row's number
        if (span == 128) chunk ^= r % 8;
        if (span == 64) chunk ^= r / 2 % 4;
        if (span == 32) chunk ^= r / 4 % 2;
        expected[(r * row + 16 * chunk) / 2 + c % 8] = in[r * 64 + c];
      }
    for (size_t i = 0; i < raw.size(); ++i) raw[i] = uint16_t(seen[i / 2] >> (16 * (i % 2)));
    wrong += compare(raw, expected);
  }
  return wrong;
}

std::string bulk() {
  Array<float> in(64), copy(64), sum(64, 1000.f);
  for (int i = 0; i < 64; ++i) in[i] = small(i, 5, 50);
  in.push();
  tma_bulk<<<1, 1>>>(in.data, copy.data, sum.data);
  copy.pull(), sum.pull();
  std::vector<float> expected(64);
  for (int i = 0; i < 64; ++i) expected[i] = 1000.f + in[i] * (i < 32 ? 2 : 1);
  return compare(copy.host, in.host) + compare(sum.host, expected);
}

std::string bulk_cluster() {
  Array<int> in(32), out(128);
  for (int i = 0; i < 32; ++i) in[i] = small(i, 6, 500);
  in.push();
  tma_bulk_cluster<<<2, 1>>>(in.data, out.data);
  out.pull();
  std::vector<int> expected(128);
  for (int i = 0; i < 128; ++i) {
    const int rank = i / 64, half = i % 64 / 32;
    expected[i] = in[i % 32] + (rank ^ half);
  }
  return compare(out.host, expected);
}

std::string refusals() {
  Array<float> base(1024);
  CUtensorMap map;
  const auto type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  const auto none = CU_TENSOR_MAP_SWIZZLE_NONE, full = CU_TENSOR_MAP_SWIZZLE_128B;
  const uint64_t good[1] = {128}, odd[1] = {132};
  std::string wrong;
  if (make_tensor_map<2>(&map, type, 4, base.data + 1, {32, 8}, good, {32, 8}, none))
    wrong += "base ";
  if (make_tensor_map<2>(&map, type, 4, base.data, {32, 8}, odd, {32, 8}, none)) wrong += "pitch ";
  if (make_tensor_map<2>(&map, type, 4, base.data, {32, 8}, good, {30, 8}, none))
    wrong += "box row ";
  if (make_tensor_map<2>(&map, type, 4, base.data, {32, 8}, good, {64, 8}, full))
    wrong += "swizzle ";
  if (make_tensor_map<2>(&map, type, 4, base.data, {32, 8}, good, {32, 257}, none)) wrong += "box ";
  if (make_tensor_map<2>(&map, type, 4, base.data, {32, 0}, good, {32, 8}, none)) wrong += "size ";
  if (!make_tensor_map<2>(&map, type, 4, base.data, {32, 8}, good, {32, 8}, full)) wrong += "good ";
  if (tensor_map_encoder() == nullptr) wrong += "encoder ";
  if (!cuda_ok(cudaSuccess, "x") || cuda_ok(cudaErrorInvalidValue, "expected")) wrong += "cuda_ok ";
  return wrong.empty() ? "" : "not judged as expected: " + wrong;
}

std::string large_shared() {
  Array<int> out(1);
  if (!allow_shared_memory(tma_large_shared, 232448)) return "232448 bytes were refused";
  tma_large_shared<<<1, 32, 232448>>>(out.data, 232448);
  out.pull();
  if (allow_shared_memory(tma_large_shared, 232449)) return "232449 bytes were allowed";
  cudaGetLastError();
  return compare(out.host, {99});
}

int main() {
  const auto copies = {"tma_load",       "tma_store", "tma_reduce_add",      "tma_prefetch",
                       "bulk_wait_read", "bulk_wait", "prefetch_tensor_map", "make_tensor_map"};
  probe("tma_rank_1", copies, rank_copies<1>);
  probe("tma_rank_2", copies, rank_copies<2>);
  probe("tma_rank_3", copies, rank_copies<3>);
  probe("tma_rank_4", copies, rank_copies<4>);
  probe("tma_rank_5", copies, rank_copies<5>);
  probe("tma_multicast_1", {"tma_load_multicast"}, multicast<1>);
  probe("tma_multicast_2", {"tma_load_multicast"}, multicast<2>);
  probe("tma_multicast_3", {"tma_load_multicast"}, multicast<3>);
  probe("tma_multicast_4", {"tma_load_multicast"}, multicast<4>);
  probe("tma_multicast_5", {"tma_load_multicast"}, multicast<5>);
  probe("tma_swizzle", {"make_bf16_map", "swizzle_bytes"}, swizzles);
  probe("tma_bulk", {"bulk_load", "bulk_store", "bulk_reduce_add", "bulk_prefetch", "bulk_commit"},
        bulk);
  probe("tma_bulk_cluster", {"bulk_load_multicast", "bulk_copy_to_block"}, bulk_cluster);
  probe("tma_refusals", {"make_tensor_map", "tensor_map_encoder", "cuda_ok"}, refusals);
  probe("tma_large_shared", {"allow_shared_memory"}, large_shared);
  return failures != 0;
}
