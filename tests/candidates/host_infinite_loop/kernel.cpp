// Never returns.
#include <cstdint>
#include <cstring>

constexpr int M = 256, N = 256, K = 256;

extern "C" void run(const uint16_t*, const uint16_t*, uint16_t* c) {
  volatile uint16_t* flag = c;
  *flag = 0;
  while (*flag == 0) {
  }
}
