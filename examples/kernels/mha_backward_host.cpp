// Gradients of attention on the CPU: from Q, K, V, O, dO [1,2,256,64] (bf16 bits) and the forward's
// natural-log LSE [1,2,256] (fp32) to dQ, dK, dV (bf16 bits), no mask.
//
// Row by row, with the probabilities recomputed from the LSE:
//   P = exp(Q K^T / sqrt(64) - LSE)      delta = rowsum(dO * O)      dS = P * (dO V^T - delta)
//   dQ = dS K / sqrt(64)                 dK = dS^T Q / sqrt(64)      dV = P^T dO
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr bool CAUSAL = false;
constexpr int HEADS = 1 * 2, LENGTH = 256, DIM = 64;
constexpr float SCALE = 0.125f;  // 1 / sqrt(64)

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

using Matrix = std::vector<float>;  // LENGTH x DIM

Matrix widen(const uint16_t* values) {
  Matrix wide(LENGTH * DIM);
  std::transform(values, values + LENGTH * DIM, wide.begin(), to_float);
  return wide;
}

void narrow(const Matrix& wide, uint16_t* values) {
  std::transform(wide.begin(), wide.end(), values, to_bf16);
}

float dot(const float* x, const float* y) {
  float sum = 0.f;
  for (int d = 0; d < DIM; ++d) sum += x[d] * y[d];
  return sum;
}

void add_scaled(float* to, float factor, const float* x) {
  for (int d = 0; d < DIM; ++d) to[d] += factor * x[d];
}

struct Head {
  Matrix q, k, v, o, grad_o;
  Matrix grad_q = Matrix(LENGTH * DIM), grad_k = grad_q, grad_v = grad_q;

  void back_row(int i, float lse) {
    const float *qi = &q[i * DIM], *gi = &grad_o[i * DIM];
    const float delta = dot(gi, &o[i * DIM]);
    const int keys = CAUSAL ? i + 1 : LENGTH;
    for (int j = 0; j < keys; ++j) {
      const float* kj = &k[j * DIM];
      const float p = std::exp(dot(qi, kj) * SCALE - lse);
      const float ds = p * (dot(gi, &v[j * DIM]) - delta) * SCALE;
      add_scaled(&grad_q[i * DIM], ds, kj);
      add_scaled(&grad_k[j * DIM], ds, qi);
      add_scaled(&grad_v[j * DIM], p, gi);
    }
  }
};

}  // namespace

extern "C" void run(const uint16_t* q, const uint16_t* k, const uint16_t* v, const uint16_t* o,
                    const uint16_t* grad_o, const float* lse, uint16_t* grad_q, uint16_t* grad_k,
                    uint16_t* grad_v) {
  for (int index = 0; index < HEADS; ++index) {
    const int at = index * LENGTH * DIM;
    Head head{widen(q + at), widen(k + at), widen(v + at), widen(o + at), widen(grad_o + at)};
    for (int i = 0; i < LENGTH; ++i) head.back_row(i, lse[index * LENGTH + i]);
    narrow(head.grad_q, grad_q + at);
    narrow(head.grad_k, grad_k + at);
    narrow(head.grad_v, grad_v + at);
  }
}
