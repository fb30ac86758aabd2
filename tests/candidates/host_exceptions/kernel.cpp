// Throws and catches; asks for the type of an object.
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <typeinfo>

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

struct Shape {
  virtual ~Shape() = default;
};
struct Square : Shape {
  int side = M;
};

static int side_of(const Shape& shape) {
  const auto* square = dynamic_cast<const Square*>(&shape);
  if (!square || typeid(shape) != typeid(Square)) throw std::invalid_argument("no square");
  return square->side;
}

extern "C" void run(const uint16_t* a, const uint16_t* b, uint16_t* c) {
  try {
    side_of(Shape());
  } catch (const std::invalid_argument&) {
    if (side_of(Square()) == M) gemm(a, b, c);
  }
}
