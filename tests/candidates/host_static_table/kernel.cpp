// Builds a table when the library is loaded and keeps it for all calls.
#include <cstdint>
#include <cstring>
#include <vector>

constexpr int M = 256, N = 256, K = 256;

static float to_float(uint16_t bits) {
  const uint32_t wide = uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

static uint16_t to_bf16(float value) {  // nearest, ties to even; NaN does not occur here
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return uint16_t((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

static void gemm(const uint16_t* a, const uint16_t* b, uint16_t* c) {
  for (int m = 0; m < M; ++m)
    for (int n = 0; n < N; ++n) {
      float sum = 0.f;
      for (int k = 0; k < K; ++k) sum += to_float(a[m * K + k]) * to_float(b[n * K + k]);
      c[m * N + n] = to_bf16(sum);
    }
}

struct Table {
  std::vector<float> of_bits;
  Table() : of_bits(1 << 16) {
    for (uint32_t bits = 0; bits < 1u << 16; ++bits) of_bits[bits] = to_float(uint16_t(bits));
  }
};
static const Table table;

extern "C" void run(const uint16_t* a, const uint16_t* b, uint16_t* c) {
  for (int m = 0; m < M; ++m)
    for (int n = 0; n < N; ++n) {
      float sum = 0.f;
      for (int k = 0; k < K; ++k) sum += table.of_bits[a[m * K + k]] * table.of_bits[b[n * K + k]];
      c[m * N + n] = to_bf16(sum);
    }
}
