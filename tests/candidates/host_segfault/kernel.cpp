// Writes to address 8.
#include <cstdint>
#include <cstring>

constexpr int M = 256, N = 256, K = 256;

extern "C" void run(const uint16_t*, const uint16_t*, uint16_t* c) {
  c[0] = 0;
  *reinterpret_cast<volatile uint16_t*>(8) = 1;
}
