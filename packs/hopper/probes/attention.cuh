// What the attention schedules' programs share: sizes, inputs, and the answer in plain arithmetic.
#pragma once
#include "probe.cuh"
#include "../templates/epilogue.cuh"
#include "../templates/fastmath.cuh"
#include "../templates/mbarrier.cuh"
#include "../templates/sync.cuh"
#include "../templates/tma.cuh"
#include "../templates/wgmma.cuh"
#include <cmath>
#include <cuda_bf16.h>

using namespace ptx;

constexpr int HEADS = 2, LENGTH = 512, DIM = 128, ROWS = HEADS * LENGTH;
constexpr float SCALE = 0.08838834764831845f, LOG2E = 1.4426950408889634f;

inline std::vector<float> floats(const std::vector<__nv_bfloat16>& values) {
  return std::vector<float>(values.begin(), values.end());
}

// Inputs, output, and (after `differentiate`) gradients, all [HEADS * LENGTH, DIM].
struct Attention {
  Array<__nv_bfloat16> q{size_t(ROWS) * DIM}, k{size_t(ROWS) * DIM}, v{size_t(ROWS) * DIM};
  Array<__nv_bfloat16> go{size_t(ROWS) * DIM};
  std::vector<float> o = std::vector<float>(ROWS * DIM), lse = std::vector<float>(ROWS);
  std::vector<float> gq = o, gk = o, gv = o, delta = lse;

  Attention() {
    Array<__nv_bfloat16>* all[4] = {&q, &k, &v, &go};
    for (int a = 0; a < 4; ++a) {
      for (int i = 0; i < ROWS * DIM; ++i)
        (*all[a])[i] = __float2bfloat16(small(i, 81 + a, 64) / 32.f);
      all[a]->push();
    }
    for (int row = 0; row < ROWS; ++row) forward(row);
  }

  static double dot(const float* x, const float* y) {
    double sum = 0;
    for (int d = 0; d < DIM; ++d) sum += double(x[d]) * y[d];
    return sum;
  }

  std::vector<double> probabilities(int row) {
    const int first = row / LENGTH * LENGTH;
    std::vector<double> p(LENGTH);
    double top = -INFINITY, sum = 0;
    for (int j = 0; j < LENGTH; ++j) {
      p[j] = SCALE * dot(&qf[row * DIM], &kf[(first + j) * DIM]);
      top = std::fmax(top, p[j]);
    }
    for (double& x : p) sum += x = std::exp(x - top);
    for (double& x : p) x /= sum;
    lse[row] = float(top + std::log(sum));
    return p;
  }

  void forward(int row) {
    if (qf.empty())
      qf = floats(q.host), kf = floats(k.host), vf = floats(v.host), gof = floats(go.host);
    const auto p = probabilities(row);
    for (int j = 0; j < LENGTH; ++j)
      for (int d = 0; d < DIM; ++d)
        o[row * DIM + d] += float(p[j] * vf[(row / LENGTH * LENGTH + j) * DIM + d]);
    delta[row] = float(dot(&o[row * DIM], &gof[row * DIM]));
  }

  void differentiate() {
    for (int row = 0; row < ROWS; ++row) {
      const auto p = probabilities(row);
      for (int j = 0; j < LENGTH; ++j) {
        const int key = row / LENGTH * LENGTH + j;
        const double gp = dot(&gof[row * DIM], &vf[key * DIM]);
        const double gs = SCALE * p[j] * (gp - delta[row]);
        for (int d = 0; d < DIM; ++d) {
          gv[key * DIM + d] += float(p[j] * gof[row * DIM + d]);
          gq[row * DIM + d] += float(gs * kf[key * DIM + d]);
          gk[key * DIM + d] += float(gs * qf[row * DIM + d]);
        }
      }
    }
  }

 private:
  std::vector<float> qf, kf, vf, gof;
};
