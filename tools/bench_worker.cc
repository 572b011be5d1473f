// The worker's side of `strata bench`.

#include <algorithm>
#include <chrono>
#include <exception>
#include <istream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "strata/tools/bench.h"

namespace strata {
namespace {

// Long against the clock's own cost, short enough for many rounds.
constexpr std::chrono::milliseconds kRoundTime{20};

// How often to run the loop in a round; warms up on the way.
std::size_t ChoosePasses(BenchSubject& subject, std::size_t pairs_per_pass,
                         std::size_t pairs) {
  const std::size_t wanted = std::max<std::size_t>(1, pairs / pairs_per_pass);
  const auto once = std::max(subject.Run(1), std::chrono::nanoseconds(1));
  const auto affordable = std::chrono::nanoseconds(kRoundTime) / once;
  return std::clamp<std::size_t>(static_cast<std::size_t>(affordable), 1,
                                 wanted);
}

void Serve(BenchSubject& subject, const BenchScript& script, std::size_t pairs,
           std::istream& in, std::ostream& out) {
  const std::size_t passes = ChoosePasses(subject, script.pairs(), pairs);
  const auto total_pairs = static_cast<double>(passes * script.pairs());
  for (std::string line; std::getline(in, line);) {
    const std::chrono::nanoseconds time = subject.Run(passes);
    nlohmann::json answer;
    answer["pair_ns"] = static_cast<double>(time.count()) / total_pairs;
    answer["reserved_ratio"] = nullptr;
    if (const auto reserved = subject.peak_reserved_bytes()) {
      answer["reserved_ratio"] = static_cast<double>(*reserved) /
                                 static_cast<double>(script.peak_live_bytes);
    }
    out << answer.dump() << std::endl;
  }
}

}  // namespace

void ServeBench(const BenchAllocator& allocator, const BenchWorkload& workload,
                const BenchScriptOptions& script_options, std::size_t pairs,
                const Options& options, std::istream& in, std::ostream& out) {
  try {
    const BenchScript script = workload.make(script_options);
    const auto subject = MakeBenchSubject(allocator, script, options);
    Serve(*subject, script, pairs, in, out);
  } catch (const std::exception& error) {
    nlohmann::json answer;
    answer["error"] = error.what();
    out << answer.dump() << std::endl;
  }
}

}  // namespace strata
