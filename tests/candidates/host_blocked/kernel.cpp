// C[256,256] = A[256,256] * B[256,256]^T on the CPU; bf16 travels as its 16 bits, sums are fp32.
//
// B is transposed once into fp32, so that the inner loop runs along a row of C and the compiler turns
// it into vector multiply-adds; a block of 4 x 32 sums stays in registers over the whole of K.
#include <cstdint>
#include <cstring>
#include <vector>

namespace {

constexpr int M = 256, N = 256, K = 256;
constexpr int BLOCK_M = 4, BLOCK_N = 32;
static_assert(M % BLOCK_M == 0 && N % BLOCK_N == 0, "no partial blocks");

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

void multiply_block(const float* a, const float* b_transposed, uint16_t* c) {
  float sum[BLOCK_M][BLOCK_N] = {};
  for (int k = 0; k < K; ++k)
    for (int i = 0; i < BLOCK_M; ++i)
      for (int j = 0; j < BLOCK_N; ++j) sum[i][j] += a[i * K + k] * b_transposed[k * N + j];
  for (int i = 0; i < BLOCK_M; ++i)
    for (int j = 0; j < BLOCK_N; ++j) c[i * N + j] = to_bf16(sum[i][j]);
}

}  // namespace

extern "C" void run(const uint16_t* a, const uint16_t* b, uint16_t* c) {
  std::vector<float> wide_a(M * K), b_transposed(K * N);
  for (int i = 0; i < M * K; ++i) wide_a[i] = to_float(a[i]);
  for (int n = 0; n < N; ++n)
    for (int k = 0; k < K; ++k) b_transposed[k * N + n] = to_float(b[n * K + k]);
  for (int row = 0; row < M; row += BLOCK_M)
    for (int column = 0; column < N; column += BLOCK_N)
      multiply_block(&wide_a[row * K], &b_transposed[column], c + row * N + column);
}
