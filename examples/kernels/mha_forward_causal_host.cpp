// O = softmax(Q K^T / sqrt(64)) V and its natural-log LSE on the CPU; Q, K, V, O [1,2,256,64] as bf16
// bits, LSE [1,2,256] fp32, causal mask (key <= query).
//
// Keys and values pass in tiles of 64. For each row: the running maximum m, the running sum l and the
// unnormalised output o are rescaled by exp(old m - new m) before a tile is added; at the end O = o / l
// and LSE = m + ln l.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace {

constexpr bool CAUSAL = true;
constexpr int HEADS = 1 * 2, LENGTH = 256, DIM = 64, TILE = 64;
constexpr float SCALE = 0.125f;  // 1 / sqrt(64)
static_assert(LENGTH % TILE == 0, "no partial tiles");

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

std::vector<float> widen(const uint16_t* values) {
  std::vector<float> wide(LENGTH * DIM);
  std::transform(values, values + LENGTH * DIM, wide.begin(), to_float);
  return wide;
}

struct Row {
  float top = -std::numeric_limits<float>::infinity(), sum = 0.f, out[DIM] = {};

  // Adds `count` keys and values (rows of DIM) to this row's softmax.
  void add(const float* q, const float* k, const float* v, int count) {
    float scores[TILE], highest = top;
    for (int j = 0; j < count; ++j) {
      float dot = 0.f;
      for (int d = 0; d < DIM; ++d) dot += q[d] * k[j * DIM + d];
      scores[j] = dot * SCALE;
      highest = std::max(highest, scores[j]);
    }
    const float shrink = std::exp(top - highest);
    sum *= shrink;
    for (int d = 0; d < DIM; ++d) out[d] *= shrink;
    for (int j = 0; j < count; ++j) {
      const float weight = std::exp(scores[j] - highest);
      sum += weight;
      for (int d = 0; d < DIM; ++d) out[d] += weight * v[j * DIM + d];
    }
    top = highest;
  }
};

void attend(const uint16_t* q, const uint16_t* k, const uint16_t* v, uint16_t* o, float* lse) {
  const std::vector<float> wide_q = widen(q), wide_k = widen(k), wide_v = widen(v);
  for (int i = 0; i < LENGTH; ++i) {
    Row row;
    const int keys = CAUSAL ? i + 1 : LENGTH;
    for (int first = 0; first < keys; first += TILE)
      row.add(&wide_q[i * DIM], &wide_k[first * DIM], &wide_v[first * DIM],
              std::min(TILE, keys - first));
    for (int d = 0; d < DIM; ++d) o[i * DIM + d] = to_bf16(row.out[d] / row.sum);
    lse[i] = row.top + std::log(row.sum);
  }
}

}  // namespace

extern "C" void run(const uint16_t* q, const uint16_t* k, const uint16_t* v, uint16_t* o,
                    float* lse) {
  for (int head = 0; head < HEADS; ++head) {
    const int at = head * LENGTH * DIM;
    attend(q + at, k + at, v + at, o + at, lse + head * LENGTH);
  }
}
