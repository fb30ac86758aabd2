#pragma once
#include "registers.cuh"

namespace ptx {

// d += x * y for one 16 x 8 x 16 tile of a warp.
__device__ inline void multiply(float (&d)[4], const unsigned (&x)[4], const unsigned (&y)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(x[0]), "r"(x[1]), "r"(x[2]), "r"(x[3]), "r"(y[0]), "r"(y[1]));
}

}  // namespace ptx
