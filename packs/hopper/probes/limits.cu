// Where the TMA's tolerance for places outside the tensor ends.
#include "probe.cuh"
#include "../templates/mbarrier.cuh"
#include "../templates/sync.cuh"
#include "../templates/tma.cuh"

using namespace ptx;

enum Operation { LOAD, STORE, REDUCE, PREFETCH };

struct Place {
  int at[5];
};

template <int RANK, Operation OPERATION>
__global__ void limit(const __grid_constant__ CUtensorMap map, Place place, float* seen) {
  constexpr int COUNT = 4 << RANK;
  __shared__ alignas(128) float values[128];
  __shared__ alignas(8) uint64_t object;
  const uint32_t bar = smem_address(&object), buffer = smem_address(values);
  int at[RANK];
  for (int i = 0; i < RANK; ++i) at[i] = place.at[i];
  for (int i = 0; i < COUNT; ++i) values[i] = float(1000 + i);
  mbarrier_init(bar, 1);
  fence_mbarrier_init();
  fence_async_shared();
  if constexpr (OPERATION == LOAD) {
    mbarrier_arrive_expect(bar, 4 * COUNT);
    tma_load(buffer, &map, bar, at);
    mbarrier_wait(bar, 0);
  }
  if constexpr (OPERATION == STORE) tma_store(&map, buffer, at);
  if constexpr (OPERATION == REDUCE) tma_reduce_add(&map, buffer, at);
  if constexpr (OPERATION == PREFETCH) tma_prefetch(&map, at);
  bulk_commit();
  bulk_wait();
  for (int i = 0; i < COUNT; ++i) seen[i] = values[i];
}

template <int RANK, Operation OPERATION>
void run(const char* name, Place place, cudaError_t expected = cudaSuccess) {
  const auto body = [&]() -> std::string {
    constexpr int COUNT = 4 << RANK;
    size_t total = 32;
    uint64_t size[RANK] = {32}, pitch[5] = {128};
    uint32_t box[RANK] = {8};
    for (int i = 1; i < RANK; ++i) size[i] = 8, box[i] = 2, total *= 8;
    for (int i = 1; i < 5; ++i) pitch[i] = pitch[i - 1] * 8;
    Array<float> tensor(total), seen(COUNT);
    for (size_t i = 0; i < total; ++i) tensor[i] = float(i);
    tensor.push();
    CUtensorMap map;
    if (!make_tensor_map<RANK>(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT32, 4, tensor.data, size, pitch,
                               box, CU_TENSOR_MAP_SWIZZLE_NONE))
      return "refused";
    std::vector<float> after = tensor.host, box_expected(COUNT);
    for (int i = 0; i < COUNT; ++i) {
      int64_t index = 0, stride = 1;
      int rest = i;
      for (int d = 0; d < RANK; ++d) {
        const int side = d ? 2 : 8, c = place.at[d] + rest % side;
        if (c < 0 || c >= int(size[d])) index = INT64_MIN / 2;
        index += c * stride, stride *= int64_t(size[d]), rest /= side;
      }
      const bool inside = index >= 0;
      box_expected[i] = OPERATION != LOAD ? 1000 + i : inside ? tensor[index] : 0;
      if (inside && OPERATION == STORE) after[index] = 1000 + i;
      if (inside && OPERATION == REDUCE) after[index] += 1000 + i;
    }
    limit<RANK, OPERATION><<<1, 1>>>(map, place, seen.data);
    if (cudaDeviceSynchronize() != cudaSuccess) return "";
    tensor.pull(), seen.pull();
    return compare(tensor.host, after) + compare(seen.host, box_expected);
  };
  probe(name, {}, body, expected);
}

int main() {
  const cudaError_t stops = cudaErrorIllegalInstruction;
  run<2, LOAD>("limit_load_inner_not_16_bytes", {{3, 1}}, stops);
  run<2, LOAD>("limit_load_inner_negative_not_16_bytes", {{-3, 1}}, stops);
  run<2, STORE>("limit_store_inner_not_16_bytes", {{3, 1}}, stops);
  run<2, REDUCE>("limit_reduce_inner_not_16_bytes", {{3, 1}}, stops);
  run<2, STORE>("limit_store_inner_negative", {{-4, 1}}, stops);
  run<2, STORE>("limit_store_outer_negative", {{4, -1}}, stops);
  run<2, REDUCE>("limit_reduce_outer_negative", {{4, -1}}, stops);
  run<4, STORE>("limit_store_4d_negative", {{4, 1, 2, -1}}, stops);
  run<2, LOAD>("limit_load_negative", {{-4, -1}});
  run<2, LOAD>("limit_load_all_outside", {{4, -5}});
  run<2, STORE>("limit_store_all_outside", {{4, 9}});
  run<4, STORE>("limit_store_4d_over_the_end", {{4, 1, 7, 7}});
  run<4, PREFETCH>("limit_prefetch_4d_negative", {{-4, 1, 7, 2}});
  return failures != 0;
}
