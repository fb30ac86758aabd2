// Probes of templates/fastmath.cuh, against double arithmetic on the host.
#include "probe.cuh"
#include "../templates/fastmath.cuh"
#include <cmath>
#include <cuda_bf16.h>

using namespace ptx;

__global__ void fastmath_units(const float* x, float* out) {
  const int i = threadIdx.x;
  out[i] = exp2_approx(-x[i]), out[256 + i] = log2_approx(x[i]), out[512 + i] = rcp_approx(x[i]);
  out[768 + i] = rsqrt_approx(x[i]), out[1024 + i] = tanh_approx(x[i] - 4.f);
  out[1280 + i] = exp2_scaled(x[i], 0.5f, 3.f);
}

__global__ void fastmath_infinity(float* out) {
  out[0] = exp2_approx(-INFINITY), out[1] = exp2_scaled(-INFINITY, 0.25f, 1.f);
}

__global__ void fastmath_quads(const float* x, float* out) {
  out[threadIdx.x] = quad_max(x[threadIdx.x]), out[64 + threadIdx.x] = quad_sum(x[threadIdx.x]);
}

__global__ void fastmath_fma(const uint32_t* x, uint32_t* out) {
  const int i = threadIdx.x;
  out[i] = fma_bf16x2(x[i], x[64 + i], x[128 + i]);
}

std::string units() {
  Array<float> x(256), out(1536);
  for (int i = 0; i < 256; ++i) x[i] = 0.03125f * (i + 1);
  x.push();
  fastmath_units<<<1, 256>>>(x.data, out.data);
  out.pull();
  std::vector<double> relative(1536), zero(1536);
  for (int i = 0; i < 256; ++i) {
    const double v = x[i];
    const double exact[6] = {std::exp2(-v),    std::log2(v),     1 / v,
                             1 / std::sqrt(v), std::tanh(v - 4), std::exp2(v * 0.5 - 3)};
    for (int f = 0; f < 6; ++f)
      relative[256 * f + i] = (out[256 * f + i] - exact[f]) / std::fmax(std::fabs(exact[f]), 0.1);
  }
  const std::vector<double> tanh_part(relative.begin() + 1024, relative.begin() + 1280);
  for (int i = 1024; i < 1280; ++i) relative[i] = 0;
  return compare(relative, zero, 2e-5) + compare(tanh_part, std::vector<double>(256), 2e-3);
}

std::string infinity() {
  Array<float> out(2, 5.f);
  fastmath_infinity<<<1, 1>>>(out.data);
  out.pull();
  return compare(out.host, {0.f, 0.f});
}

std::string quads() {
  Array<float> x(64), out(128);
  for (int i = 0; i < 64; ++i) x[i] = small(i, 51, 90);
  x.push();
  fastmath_quads<<<1, 64>>>(x.data, out.data);
  out.pull();
  std::vector<float> expected(128);
  for (int i = 0; i < 64; ++i) {
    const float* quad = &x[i / 4 * 4];
    expected[i] = std::fmax(std::fmax(quad[0], quad[1]), std::fmax(quad[2], quad[3]));
    expected[64 + i] = quad[0] + quad[1] + quad[2] + quad[3];
  }
  return compare(out.host, expected);
}

std::string packed_fma() {
  Array<uint32_t> x(192), out(64);
  std::vector<uint32_t> expected(64);
  float values[2][192];
  for (int i = 0; i < 192; ++i) {
    for (int h = 0; h < 2; ++h) values[h][i] = small(2 * i + h, 61, 11);
    const __nv_bfloat162 pair(__float2bfloat16(values[0][i]), __float2bfloat16(values[1][i]));
    std::memcpy(&x[i], &pair, 4);
  }
  x.push();
  fastmath_fma<<<1, 64>>>(x.data, out.data);
  out.pull();
  for (int i = 0; i < 64; ++i) {
    float sum[2];
    for (int h = 0; h < 2; ++h) sum[h] = values[h][i] * values[h][64 + i] + values[h][128 + i];
    const __nv_bfloat162 pair(__float2bfloat16(sum[0]), __float2bfloat16(sum[1]));
    std::memcpy(&expected[i], &pair, 4);
  }
  return compare(out.host, expected);
}

int main() {
  probe("fastmath_units",
        {"exp2_approx", "log2_approx", "rcp_approx", "rsqrt_approx", "tanh_approx", "exp2_scaled"},
        units);
  probe("fastmath_infinity", {"exp2_approx", "exp2_scaled"}, infinity);
  probe("fastmath_quads", {"quad_max", "quad_sum"}, quads);
  probe("fastmath_fma", {"fma_bf16x2"}, packed_fma);
  return failures != 0;
}
