// Its kernel and its launch stand in different .cu files.
#include "product.cuh"

extern "C" void run(const __nv_bfloat16* a, const __nv_bfloat16* b, __nv_bfloat16* c,
                    cudaStream_t stream) {
  product(a, b, c, stream);
}
