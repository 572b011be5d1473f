#include "strata/tools/bench/workloads/script.h"

#include <algorithm>
#include <utility>

#include "strata/base/size.h"
#include "strata/tools/bench/workloads/random.h"
#include "strata/tools/readers/trace_reader.h"

namespace strata::tools {
namespace {

constexpr std::size_t kTensorBytes = Kibibytes(4);
constexpr std::uint32_t kTensors = 100;
constexpr std::uint64_t kSmallestBytes = 256;

}  // namespace

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

BenchScript MakePairScript(std::size_t pairs) {
  BenchScript script;
  for (std::size_t i = 0; i < std::max<std::size_t>(pairs, 1); ++i) {
    script.loop.push_back({kTensorBytes, 0});
    script.loop.push_back({0, 0});
  }
  script.is_uniform = true;
  return Finish(std::move(script));
}

BenchScript MakeTensorScript(std::size_t pairs, FreeOrder order) {
  BenchScript script;
  do {
    for (std::uint32_t i = 0; i < kTensors; ++i) {
      script.loop.push_back({kTensorBytes, i});
    }
    for (std::uint32_t i = 0; i < kTensors; ++i) {
      script.loop.push_back(
          {0, order == FreeOrder::kLastFirst ? kTensors - 1 - i : i});
    }
  } while (script.pairs() < pairs);
  return Finish(std::move(script));
}

BenchScript MakeReplaceScript(std::size_t pairs, std::size_t live,
                              std::uint64_t largest, std::uint64_t seed) {
  BenchRandom random(seed);
  BenchScript script;
  const auto slots = static_cast<std::uint32_t>(live);
  for (std::uint32_t i = 0; i < slots; ++i) {
    script.prologue.push_back({random.Bytes(kSmallestBytes, largest), i});
  }
  const std::size_t replaced = std::max({pairs, live, std::size_t{1}});
  script.loop.reserve(2 * replaced);
  for (std::size_t i = 0; i < replaced; ++i) {
    const std::uint32_t slot = random.Below(slots);
    script.loop.push_back({0, slot});
    script.loop.push_back({random.Bytes(kSmallestBytes, largest), slot});
  }
  script.is_uniform = true;
  return Finish(std::move(script));
}

BenchScript MakeTraceScript(const std::string& path) {
  // Strict: a workload replays all of a recording.
  TraceReaderOptions reader;
  reader.strict = true;
  const Trace trace = ReadTrace(path, reader);
  BenchScript script;
  std::vector<std::uint64_t> slots(trace.slots);
  std::size_t allocations = 0;
  for (const TraceEvent& event : trace.events) {
    std::uint64_t& bytes = slots[event.slot()];
    if (event.is_allocate()) {
      bytes = trace.allocated_bytes[allocations++];
      if (bytes != 0) script.loop.push_back({bytes, event.slot()});
    } else if (event.is_try()) {
      ++allocations;
    } else if (event.is_free() && bytes != 0) {
      bytes = 0;
      script.loop.push_back({0, event.slot()});
    }
  }
  for (std::uint32_t i = 0; i < slots.size(); ++i) {
    if (slots[i] != 0) script.loop.push_back({0, i});
  }
  if (script.loop.empty()) {
    throw TraceError(path, 0, "nothing is allocated in it");
  }
  return Finish(std::move(script));
}

}  // namespace strata::tools
