// C[256,256] = A[256,256] * B[256,256]^T on the CPU, one dot product at a time: slow and right.
#include <cstdint>
#include <cstring>

namespace {

constexpr int M = 256, N = 256, K = 256;

float to_float(uint16_t bits) {
  const uint32_t wide = uint32_t(bits) << 16;
  float value;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

uint16_t to_bf16(float value) {  // nearest, ties to even
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return uint16_t(bits >> 16 | 0x40);  // NaN stays NaN
  return uint16_t((bits + 0x7fffu + (bits >> 16 & 1)) >> 16);
}

}  // namespace

extern "C" void run(const uint16_t* a, const uint16_t* b, uint16_t* c) {
  for (int m = 0; m < M; ++m)
    for (int n = 0; n < N; ++n) {
      float sum = 0.f;
      for (int k = 0; k < K; ++k) sum += to_float(a[m * K + k]) * to_float(b[n * K + k]);
      c[m * N + n] = to_bf16(sum);
    }
}
