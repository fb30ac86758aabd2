#pragma once
#include <cstdint>

constexpr int M = 256, N = 256, K = 256;

void product(const uint16_t* a, const uint16_t* b, uint16_t* c);
