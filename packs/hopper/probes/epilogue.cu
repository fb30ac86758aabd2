// Probes of templates/epilogue.cuh, and of a chain of two products as attention has it.
#include "wgmma.cuh"
#include "../templates/epilogue.cuh"
#include "../templates/tma.cuh"

__global__ void epilogue_pack(const float* in, uint32_t* out, float* back) {
  const int i = threadIdx.x;
  out[i] = pack_bf16(in[2 * i], in[2 * i + 1]);
  out[64 + i] = pack_f16(in[2 * i], in[2 * i + 1]);
  out[128 + i] = pack_e4m3(in[2 * i], in[2 * i + 1]);
  back[2 * i] = low_bf16(out[i]), back[2 * i + 1] = high_bf16(out[i]);
}

__global__ void epilogue_swizzle(int* out) {
  const int i = threadIdx.x;
  out[i] = swizzle<128>(16 * i), out[128 + i] = swizzle<64>(16 * i);
  out[256 + i] = swizzle<32>(16 * i), out[384 + i] = swizzle<0>(16 * i);
}

// Registers -> four matrices -> registers, plain and transposed; shared memory copied out between.
__global__ void epilogue_matrices(uint16_t* seen, uint32_t* registers) {
  __shared__ alignas(128) uint16_t values[256];
  const int lane = threadIdx.x;
  const uint32_t row = smem_address(values) + 16 * lane;
  uint32_t r[4];
  for (int m = 0; m < 4; ++m) r[m] = 1000 * m + 2 * lane | (1000 * m + 2 * lane + 1) << 16;
  stmatrix_x4(row, r[0], r[1], r[2], r[3]);
  __syncwarp();
  for (int i = lane; i < 256; i += 32) seen[i] = values[i];
  uint32_t back[4];
  ldmatrix_x4(back, row);
  for (int m = 0; m < 4; ++m) registers[32 * m + lane] = back[m];
  ldmatrix_x4_trans(back, row);
  for (int m = 0; m < 4; ++m) registers[128 + 32 * m + lane] = back[m];
  __syncwarp();
  stmatrix_x4_trans(row, r[0], r[1], r[2], r[3]);
  __syncwarp();
  for (int i = lane; i < 256; i += 32) seen[256 + i] = values[i];
}

__global__ void epilogue_shared_128(const uint4* in, uint4* out) {
  __shared__ alignas(16) uint4 values[32];
  store_shared_128(smem_address(&values[threadIdx.x]), in[threadIdx.x]);
  __syncwarp();
  out[threadIdx.x] = load_shared_128(smem_address(&values[31 - threadIdx.x]));
}

// A 64 x 128 accumulator with known values; both its pieces leave by TMA, by hand and transposed.
__global__ __launch_bounds__(128) void epilogue_tiles(const __grid_constant__ CUtensorMap map,
                                                      const __grid_constant__ CUtensorMap map_trans,
                                                      __nv_bfloat16* direct) {
  const uint32_t buffer = smem_address(aligned_shared());
  float d[64];
  for (int i = 0; i < 64; ++i)
    d[i] = acc_row(threadIdx.x, i) + 64 * (acc_column(threadIdx.x, i) % 4);
#pragma unroll
  for (int piece = 0; piece < 2; ++piece) {
    acc_to_shared(buffer + 16384 * piece, d, piece, threadIdx.x);
    acc_to_shared_trans(buffer + 16384 * piece + 8192, d, piece, threadIdx.x);
  }
  fence_async_shared();
  named_barrier_sync(1, 128);
  if (threadIdx.x == 0) {
    for (int piece = 0; piece < 2; ++piece) {
      tma_store(&map, buffer + 16384 * piece, {64 * piece, 0});
      tma_store(&map_trans, buffer + 16384 * piece + 8192, {0, 64 * piece});
    }
    bulk_commit();
    bulk_wait();
  }
  acc_to_global(direct, 128, d, 60, threadIdx.x);
}

// O = (Q K^T) V: Q, K [64, 64] K-major, V [64, 64] as it is in memory; the scores stay in
// registers.
__global__ __launch_bounds__(128) void epilogue_chain(const uint8_t* q, const uint8_t* k,
                                                      const uint8_t* v, float* out) {
  using Rows = Layout<64, 64, 2, 128, K_MAJOR>;
  uint8_t* tiles = aligned_shared();
  lay_out<Rows, 64, 64, 2>(tiles, q);
  lay_out<Rows, 64, 64, 2>(tiles + 8192, k);
  lay_out<Rows, 64, 64, 2>(tiles + 16384, v);  // rows of V are K, its columns N: MN-major
  fence_async_shared();
  __syncthreads();
  const uint32_t base = smem_address(tiles);
  float s[32], o[32];
  uint32_t p[16];
  wgmma_fence();
#pragma unroll
  for (int i = 0; i < 4; ++i)
    wgmma_ss<64>(s, k_major(base + 32 * i), k_major(base + 8192 + 32 * i), i);
  wgmma_commit();
  wgmma_wait<0>();
  wgmma_settle(s);
  acc_to_a(p, s);
  wgmma_fence();
#pragma unroll
  for (int i = 0; i < 4; ++i)
    wgmma_rs<64, Input::BF16, 1>(o, p + 4 * i, mn_major(base + 16384 + 2048 * i, 8192), i);
  wgmma_commit();
  wgmma_wait<0>();
  wgmma_settle(o);
  for (int i = 0; i < 32; ++i)
    out[acc_row(threadIdx.x, i) * 64 + acc_column(threadIdx.x, i)] = o[i];
}

std::string packing() {
  Array<float> in(128), back(128);
  Array<uint32_t> out(192);
  for (int i = 0; i < 128; ++i) in[i] = small(i, 31, 2000) / 7.f;
  in[0] = 1e6f, in[1] = -1e6f;
  in.push();
  epilogue_pack<<<1, 64>>>(in.data, out.data, back.data);
  out.pull(), back.pull();
  std::vector<uint32_t> expected(192);
  std::vector<float> rounded(128);
  for (int i = 0; i < 64; ++i) {
    const float low = in[2 * i], high = in[2 * i + 1];
    const __nv_bfloat162 b(__float2bfloat16(low), __float2bfloat16(high));
    const __half2 h(__float2half(low), __float2half(high));
    std::memcpy(&expected[i], &b, 4), std::memcpy(&expected[64 + i], &h, 4);
    expected[128 + i] = __nv_fp8_e4m3(low).__x | __nv_fp8_e4m3(high).__x << 8;
    rounded[2 * i] = __bfloat162float(b.x), rounded[2 * i + 1] = __bfloat162float(b.y);
  }
  return compare(out.host, expected) + compare(back.host, rounded);
}

std::string swizzling() {
  Array<int> out(512);
  epilogue_swizzle<<<1, 128>>>(out.data);
  out.pull();
  std::vector<int> expected(512);
  for (int i = 0; i < 128; ++i) {
    expected[i] = 16 * (i ^ (i / 8 % 8)), expected[128 + i] = 16 * (i ^ (i / 8 % 4));
    expected[256 + i] = 16 * (i ^ (i / 8 % 2)), expected[384 + i] = 16 * i;
  }
  return compare(out.host, expected);
}

std::string matrices() {
  Array<uint16_t> seen(512);
  Array<uint32_t> registers(256);
  epilogue_matrices<<<1, 32>>>(seen.data, registers.data);
  seen.pull(), registers.pull();
  // Element (row, column) of matrix m holds 1000 m + 8 row + column: two columns a lane, four lanes
  // a row.
  std::vector<uint16_t> expected(512);
  std::vector<uint32_t> loaded(256);
  for (int i = 0; i < 256; ++i) {
    const int m = i / 64, row = i % 64 / 8, column = i % 8;
    expected[i] = uint16_t(1000 * m + 8 * row + column);
    expected[256 + i] = uint16_t(1000 * m + 8 * column + row);
  }
  for (int i = 0; i < 128; ++i) {
    const int m = i / 32, row = i % 32 / 4, column = 2 * (i % 4);
    loaded[i] = uint32_t(1000 * m + 8 * row + column) | uint32_t(1000 * m + 8 * row + column + 1)
                                                            << 16;
    loaded[128 + i] =
        uint32_t(1000 * m + 8 * column + row) | uint32_t(1000 * m + 8 * (column + 1) + row) << 16;
  }
  return compare(seen.host, expected) + compare(registers.host, loaded);
}

std::string shared_128() {
  Array<uint4> in(32), out(32);
  for (uint32_t i = 0; i < 32; ++i) in[i] = {i, i + 100, i + 200, i + 300};
  in.push();
  epilogue_shared_128<<<1, 32>>>(in.data, out.data);
  out.pull();
  for (int i = 0; i < 32; ++i)
    if (std::memcmp(&out[i], &in[31 - i], 16) != 0) return text("16 bytes of lane %d differ", i);
  return "";
}

std::string tiles() {
  Array<__nv_bfloat16> out(64 * 128), trans(128 * 64), direct(64 * 128, __float2bfloat16(-1.f));
  CUtensorMap map, map_trans;
  if (!make_bf16_map(&map, out.data, 64, 128, 256, 64, 64) ||
      !make_bf16_map(&map_trans, trans.data, 128, 64, 128, 64, 64))
    return "the tensor map was refused";
  epilogue_tiles<<<1, 128, 40 * 1024>>>(map, map_trans, direct.data);
  out.pull(), trans.pull(), direct.pull();
  std::vector<float> seen, expected;
  for (int i = 0; i < 64 * 128; ++i) {
    const int row = i / 128, column = i % 128;
    const float value = row + 64 * (column % 4);
    seen.insert(seen.end(), {float(out[i]), float(trans[column * 64 + row]), float(direct[i])});
    expected.insert(expected.end(), {value, value, row < 60 ? value : -1.f});
  }
  return compare(seen, expected);
}

std::string chain() {
  std::vector<int> values[3];
  Array<uint8_t> q(8192), k(8192), v(8192);
  Array<uint8_t>* arrays[3] = {&q, &k, &v};
  for (int which = 0; which < 3; ++which) {
    for (int i = 0; i < 4096; ++i) values[which].push_back(small(i, 41 + which, 1));
    arrays[which]->host = encode<Input::BF16>(values[which]);
    arrays[which]->push();
  }
  std::vector<float> s(4096), expected(4096);
  for (int i = 0; i < 4096; ++i)
    for (int d = 0; d < 64; ++d)
      s[i] += float(values[0][i / 64 * 64 + d] * values[1][i % 64 * 64 + d]);
  for (int i = 0; i < 4096; ++i)
    for (int j = 0; j < 64; ++j) expected[i] += s[i / 64 * 64 + j] * values[2][j * 64 + i % 64];
  Array<float> out(4096);
  epilogue_chain<<<1, 128, 32 * 1024>>>(q.data, k.data, v.data, out.data);
  out.pull();
  return compare(out.host, expected);
}

int main() {
  probe("epilogue_pack", {"pack_bf16", "pack_f16", "pack_e4m3", "low_bf16", "high_bf16"}, packing);
  probe("epilogue_swizzle", {"swizzle"}, swizzling);
  probe("epilogue_matrices",
        {"stmatrix_x4", "stmatrix_x4_trans", "ldmatrix_x4", "ldmatrix_x4_trans"}, matrices);
  probe("epilogue_shared_128", {"store_shared_128", "load_shared_128"}, shared_128);
  probe("epilogue_tiles", {"acc_to_shared", "acc_to_shared_trans", "acc_to_global"}, tiles);
  probe("epilogue_chain", {"acc_to_a", "wgmma_ss", "wgmma_rs"}, chain);
  return failures != 0;
}
