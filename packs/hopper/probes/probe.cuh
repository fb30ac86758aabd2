// What every probe program shares: arrays on both sides, one JSON line per probe, exit status.
#pragma once
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
#include <functional>
#include <initializer_list>
#include <string>
#include <unistd.h>
#include <vector>

inline int failures = std::getenv("PROBE_FAILED") != nullptr;

// Same values on the host (index it) and on the device (data); push and pull copy.
template <class T>
struct Array {
  std::vector<T> host;
  T* data = nullptr;
  explicit Array(size_t count, T value = T{}) : host(count, value) {
    cudaMalloc(&data, count * sizeof(T));
    push();
  }
  Array(const Array&) = delete;
  ~Array() { cudaFree(data); }
  T& operator[](size_t i) { return host[i]; }
  void push() { cudaMemcpy(data, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice); }
  void pull() { cudaMemcpy(host.data(), data, host.size() * sizeof(T), cudaMemcpyDeviceToHost); }
};

inline std::string text(const char* format, ...) {
  char line[400];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(line, sizeof line, format, arguments);
  va_end(arguments);
  return line;
}

inline void line(const char* probe, std::initializer_list<const char*> wrappers, bool ok,
                 const std::string& detail) {
  std::string names;
  for (const char* name : wrappers)
    names += std::string(names.empty() ? "\"" : ", \"") + name + "\"";
  std::printf("{\"probe\": \"%s\", \"wrappers\": [%s], \"ok\": %s, \"detail\": %s}\n", probe,
              names.c_str(), ok ? "true" : "false", detail.c_str());
  std::fflush(stdout);
  failures += !ok;
}

// An error of the device spoils its context: go on with the next probe in a fresh process.
inline void start_again_after(int index) {
  if (failures) setenv("PROBE_FAILED", "1", 1);
  setenv("PROBE_FROM", std::to_string(index + 1).c_str(), 1);
  execl("/proc/self/exe", "probe", nullptr);
  std::exit(1);
}

// Runs `body` (which launches and returns what was wrong, or nothing) and prints its line. With an
// `expected` error the probe passes when the device stops with just that one.
inline void probe(const char* name, std::initializer_list<const char*> wrappers,
                  const std::function<std::string()>& body, cudaError_t expected = cudaSuccess) {
  static int next = 0;
  static const int first = std::getenv("PROBE_FROM") ? std::atoi(std::getenv("PROBE_FROM")) : 0;
  const int index = next++;
  if (index < first) return;
  const std::string wrong = body();
  cudaError_t error = cudaDeviceSynchronize();
  if (error == cudaSuccess) error = cudaGetLastError();
  const bool ok = error == expected && (error != cudaSuccess || wrong.empty());
  std::string seen = error == cudaSuccess ? wrong : cudaGetErrorString(error);
  if (seen.empty()) seen = ok ? "as computed on the host" : "the device did not stop";
  line(name, wrappers, ok, "\"" + seen + "\"");
  if (error != cudaSuccess) start_again_after(index);
}

// What differs first, or nothing.
template <class T>
std::string compare(const std::vector<T>& seen, const std::vector<T>& expected,
                    double tolerance = 0) {
  size_t bad = 0, first = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    const double difference = double(seen[i]) - double(expected[i]);
    if (!(difference <= tolerance && -difference <= tolerance) && bad++ == 0) first = i;
  }
  if (bad == 0) return "";
  return text("%zu of %zu differ, first at %zu: saw %g, expected %g", bad, expected.size(), first,
              double(seen[first]), double(expected[first]));
}

// Small whole numbers that look random: sums of their products are exact in every type used here.
inline int small(size_t i, int seed, int limit) {
  uint32_t x = uint32_t(i) * 2654435761u + uint32_t(seed) * 40503u;
  x ^= x >> 15, x *= 2246822519u, x ^= x >> 13;
  return int(x % (2 * limit + 1)) - limit;
}
