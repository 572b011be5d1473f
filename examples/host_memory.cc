// Measures the cost of host memory: allocate, write one byte of each page, and
// free, with malloc and with each strategy. Shows which strategy suits which
// size, and the effect of another malloc:
//
// usage: [LD_PRELOAD=libjemalloc.so.2] host_memory [ROUNDS] [any flag]

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "strata/examples/arguments.h"
#include "strata/facade/allocator_facade.h"
#include "strata/facade/flags.h"
#include "strata/strategy/registry.h"

namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kSizes[] = {256, std::size_t{64} << 10,
                                  std::size_t{16} << 20, std::size_t{64} << 20};

void Touch(void* data, std::size_t bytes) {
  auto* bytes_of = static_cast<volatile char*>(data);
  for (std::size_t at = 0; at < bytes; at += kPageBytes) bytes_of[at] = 1;
}

// Processor time per round of `body` in ns, best of three runs.
template <class Body>
double Measure(int rounds, Body body) {
  double best = 0;
  for (int run = 0; run < 3; ++run) {
    const std::clock_t start = std::clock();
    for (int i = 0; i < rounds; ++i) body();
    const double seconds =
        static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    if (run == 0 || seconds < best) best = seconds;
  }
  return best * 1e9 / rounds;
}

void MeasureMalloc(int rounds) {
  std::printf("%-14s", "malloc");
  for (const std::size_t bytes : kSizes) {
    std::printf(" %12.0f", Measure(rounds, [bytes] {
                  void* data = std::malloc(bytes);
                  Touch(data, bytes);
                  std::free(data);
                }));
  }
  std::printf("\n");
}

void MeasureStrategy(const std::string& name, const strata::Options& flags,
                     int rounds) {
  strata::Options options = flags;
  options.host.strategy = name;
  const strata::Place host = strata::HostPlace();
  std::unique_ptr<strata::AllocatorFacade> facade;
  try {
    facade = std::make_unique<strata::AllocatorFacade>(options);
  } catch (const std::exception& error) {
    std::printf("%-14s %s\n", name.c_str(), error.what());
    return;
  }
  std::printf("%-14s", name.c_str());
  for (const std::size_t bytes : kSizes) {
    std::printf(" %12.0f", Measure(rounds, [&] {
                  const strata::AllocationPtr one = facade->Alloc(host, bytes);
                  Touch(one->data(), bytes);
                }));
    facade->Release(host);
  }
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::optional<int> given =
        OnlyNumber(strata::ParseCommandLine({argv + 1, argv + argc}), 10);
    const int rounds = given.value_or(0);
    if (rounds < 1) {
      std::fprintf(stderr, "usage: host_memory [ROUNDS] [FLAGS]\n");
      return 2;
    }
    std::printf("%-14s %12s %12s %12s %12s\n", "ns per pair", "256 B", "64 KiB",
                "16 MiB", "64 MiB");
    MeasureMalloc(rounds);
    for (const std::string& name : strata::StrategyNames()) {
      MeasureStrategy(name, strata::OptionsFromFlags(), rounds);
    }
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "host_memory: %s\n", error.what());
    return 1;
  }
}
