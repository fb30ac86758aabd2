// Probes of wgmma with A in registers: every N in bf16, and the other types.
#include "wgmma.cuh"

int main() {
  check_registers<8, Input::BF16, 128, K_MAJOR>();
  check_registers<16, Input::BF16, 128, MN_MAJOR>();
  check_registers<32, Input::BF16, 128, K_MAJOR>();
  check_registers<64, Input::BF16, 128, K_MAJOR>();
  check_registers<64, Input::BF16, 128, MN_MAJOR>();
  check_registers<96, Input::BF16, 64, MN_MAJOR>();
  check_registers<128, Input::BF16, 128, K_MAJOR>();
  check_registers<128, Input::BF16, 128, MN_MAJOR>();
  check_registers<192, Input::BF16, 128, MN_MAJOR>();
  check_registers<256, Input::BF16, 128, MN_MAJOR>();
  check_registers<128, Input::F16, 128, MN_MAJOR>();
  check_registers<128, Input::E4M3, 128, K_MAJOR>();
  check_registers<256, Input::E4M3, 128, K_MAJOR>();
  return failures != 0;
}
