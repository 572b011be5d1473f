#include "strata/tools/bench_script.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "strata/allocation/size.h"
#include "strata/tools/rmm_log.h"

namespace strata {
namespace {

constexpr std::size_t kTensorBytes = Kibibytes(4);
constexpr std::uint32_t kTensors = 100;
constexpr std::uint32_t kLiveBlocks = 1000;

// Any sequence that is the same everywhere: the standard's distributions are
// not (splitmix64, Steele, Lea and Flood 2014).
class Random {
 public:
  std::uint64_t Next() {
    std::uint64_t z = (state_ += 0x9e3779b97f4a7c15U);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
    return z ^ (z >> 31);
  }
  std::uint32_t Below(std::uint32_t limit) {
    return static_cast<std::uint32_t>(Next() % limit);
  }
  // Log-uniform: every power of two is as likely as any other.
  std::uint64_t Bytes(std::size_t smallest, std::size_t largest) {
    const double unit = static_cast<double>(Next() >> 11) * 0x1p-53;
    const double low = std::log2(static_cast<double>(smallest));
    const double high = std::log2(static_cast<double>(largest));
    return static_cast<std::uint64_t>(std::exp2(low + unit * (high - low)));
  }

 private:
  std::uint64_t state_ = 1;
};

// Fills in what follows from the steps.
BenchScript Finish(BenchScript script) {
  std::vector<std::uint64_t> slots;
  std::uint64_t live = 0;
  // A second pass starts with the blocks that the first one left.
  for (const auto* steps : {&script.prologue, &script.loop, &script.loop}) {
    for (const BenchStep& step : *steps) {
      if (step.slot >= slots.size()) slots.resize(std::size_t{step.slot} + 1);
      live += step.bytes - slots[step.slot];
      slots[step.slot] = step.bytes;
      script.peak_live_bytes = std::max(script.peak_live_bytes, live);
    }
  }
  script.slots = slots.size();
  return script;
}

BenchScript MakePair(const BenchScriptOptions& options) {
  BenchScript script;
  for (std::size_t i = 0; i < std::max<std::size_t>(options.pairs, 1); ++i) {
    script.loop.push_back({kTensorBytes, 0});
    script.loop.push_back({0, 0});
  }
  return Finish(std::move(script));
}

// Rounds of filling all tensors and freeing them in an order.
BenchScript MakeTensors(const BenchScriptOptions& options, bool last_first) {
  BenchScript script;
  do {
    for (std::uint32_t i = 0; i < kTensors; ++i) {
      script.loop.push_back({kTensorBytes, i});
    }
    for (std::uint32_t i = 0; i < kTensors; ++i) {
      script.loop.push_back({0, last_first ? kTensors - 1 - i : i});
    }
  } while (script.pairs() < options.pairs);
  return Finish(std::move(script));
}

BenchScript MakeLifo(const BenchScriptOptions& options) {
  return MakeTensors(options, /*last_first=*/true);
}
BenchScript MakeFifo(const BenchScriptOptions& options) {
  return MakeTensors(options, /*last_first=*/false);
}

// A random one of the live blocks is freed and replaced by one of another size.
BenchScript MakeReplace(const BenchScriptOptions& options,
                        std::size_t largest) {
  constexpr std::size_t kSmallestBytes = 256;
  Random random;
  BenchScript script;
  for (std::uint32_t i = 0; i < kLiveBlocks; ++i) {
    script.prologue.push_back({random.Bytes(kSmallestBytes, largest), i});
  }
  for (std::size_t i = 0; i < std::max<std::size_t>(options.pairs, 1); ++i) {
    const std::uint32_t slot = random.Below(kLiveBlocks);
    script.loop.push_back({0, slot});
    script.loop.push_back({random.Bytes(kSmallestBytes, largest), slot});
  }
  return Finish(std::move(script));
}

BenchScript MakeRandom(const BenchScriptOptions& options) {
  return MakeReplace(options, Mebibytes(64));
}
BenchScript MakeRandomSmall(const BenchScriptOptions& options) {
  return MakeReplace(options, Kibibytes(256));
}

// One pass of the trace, all its streams taken as one; what it leaves live is
// freed at the end. Requests of 0 bytes are left out: they hold no memory.
BenchScript MakeTraining(const BenchScriptOptions& options) {
  const Trace trace = ReadRmmLog(options.trace);
  BenchScript script;
  std::vector<std::uint64_t> slots(trace.slots);
  std::size_t allocations = 0;
  for (const TraceEvent& event : trace.events) {
    std::uint64_t& bytes = slots[event.slot()];
    if (event.is_allocate()) {
      bytes = trace.allocated_bytes[allocations++];
      if (bytes != 0) script.loop.push_back({bytes, event.slot()});
    } else if (bytes != 0) {
      bytes = 0;
      script.loop.push_back({0, event.slot()});
    }
  }
  for (std::uint32_t i = 0; i < slots.size(); ++i) {
    if (slots[i] != 0) script.loop.push_back({0, i});
  }
  if (script.loop.empty()) {
    throw TraceError(options.trace, 0, "nothing is allocated in it");
  }
  return Finish(std::move(script));
}

}  // namespace

const std::vector<BenchWorkload>& BenchWorkloads() {
  static const std::vector<BenchWorkload> workloads = {
      {"pair", "one block of 4 KiB, freed at once", false, &MakePair},
      {"lifo", "100 blocks of 4 KiB, last freed first", false, &MakeLifo},
      {"fifo", "100 blocks of 4 KiB, first freed first", false, &MakeFifo},
      {"random", "1000 live blocks of 256 B to 64 MiB, replaced at random",
       false, &MakeRandom},
      {"random_small", "1000 live blocks of 256 B to 256 KiB, likewise", false,
       &MakeRandomSmall},
      {"training", "one pass of the trace --bench_trace", true, &MakeTraining},
  };
  return workloads;
}

const BenchWorkload& FindBenchWorkload(std::string_view name) {
  std::string known;
  for (const BenchWorkload& workload : BenchWorkloads()) {
    if (name == workload.name) return workload;
    known += (known.empty() ? "" : ", ") + std::string(workload.name);
  }
  throw std::invalid_argument("there is no workload '" + std::string(name) +
                              "' (known: " + known + ")");
}

}  // namespace strata
