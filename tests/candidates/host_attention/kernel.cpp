// A plain attention with both outputs.
#include <cstdint>
#include <cstring>
#include <cmath>

constexpr int B = 1, H = 2, S = 256, D = 64;

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

static void attend(const uint16_t* query, const uint16_t* k, const uint16_t* v, uint16_t* o, float* lse) {
  float score[S], top = -INFINITY, total = 0.f, sum[D] = {};
  for (int j = 0; j < S; ++j) {
    score[j] = 0.f;
    for (int d = 0; d < D; ++d) score[j] += to_float(query[d]) * to_float(k[j * D + d]);
    score[j] *= 0.125f;
    top = std::fmax(top, score[j]);
  }
  for (int j = 0; j < S; ++j) {
    const float weight = std::exp(score[j] - top);
    total += weight;
    for (int d = 0; d < D; ++d) sum[d] += weight * to_float(v[j * D + d]);
  }
  for (int d = 0; d < D; ++d) o[d] = to_bf16(sum[d] / total);
  *lse = top + std::log(total);
}

extern "C" void run(const uint16_t* q, const uint16_t* k, const uint16_t* v, uint16_t* o, float* lse) {
  for (int row = 0; row < B * H * S; ++row) {
    const int head = row / S * S * D;
    attend(q + row * D, k + head, v + head, o + row * D, lse + row);
  }
}
