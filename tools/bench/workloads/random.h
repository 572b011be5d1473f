#ifndef STRATA_TOOLS_BENCH_WORKLOADS_RANDOM_H_
#define STRATA_TOOLS_BENCH_WORKLOADS_RANDOM_H_

#include <cmath>
#include <cstdint>

namespace strata::tools {

// A sequence that is the same on every platform, unlike the standard's
// distributions.
//
// Source: splitmix64 (Steele, Lea and Flood 2014).
class BenchRandom {
 public:
  explicit BenchRandom(std::uint64_t seed) : state_(seed) {}

  std::uint64_t Next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  // `limit` > 0.
  std::uint32_t Below(std::uint32_t limit) {
    return static_cast<std::uint32_t>(Next() % limit);
  }
  // In [0, 1).
  double Unit() { return static_cast<double>(Next() >> 11) * 0x1p-53; }
  // Log-uniform: all powers of two are equally likely.
  std::uint64_t Bytes(std::uint64_t smallest, std::uint64_t largest) {
    const double low = std::log2(static_cast<double>(smallest));
    const double high = std::log2(static_cast<double>(largest));
    return static_cast<std::uint64_t>(std::exp2(low + Unit() * (high - low)));
  }

 private:
  std::uint64_t state_;
};

}  // namespace strata::tools

#endif  // STRATA_TOOLS_BENCH_WORKLOADS_RANDOM_H_
