// Probes of wgmma with both operands in shared memory: every N in both major-nesses, bf16.
#include "wgmma.cuh"

template <int N>
void check() {
  check_shared<N, Input::BF16, 128, K_MAJOR, K_MAJOR>();
  check_shared<N, Input::BF16, 128, MN_MAJOR, MN_MAJOR>();
}

int main() {
  check<8>(), check<16>(), check<32>(), check<64>(), check<96>(), check<128>(), check<192>(),
      check<256>();
  return failures != 0;
}
