// Impossible calls, as input for the checker.

#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>

#include "strata/platform/calls/call_trace.h"
#include "strata/tests/fuzz/read_any.h"
#include "strata/tests/testing/models/stress_settings.h"

namespace strata {
namespace {

constexpr std::uint64_t kTraces = 10000;
constexpr int kCallsOfATrace = 40;
// Including the events, which follow the calls.
constexpr std::size_t kObserved =
    static_cast<std::size_t>(DeviceCall::kDependency) + 1;

// Few names, so that calls meet. Some values lie at the ends of their ranges.
class AnyCalls {
 public:
  explicit AnyCalls(std::uint64_t seed) : random_(seed) {}

  std::string Trace() {
    std::string text = std::string(kCallTraceHeader) + "\n";
    for (int i = 0; i < kCallsOfATrace; ++i) text += ToCsv(Call()) + "\n";
    return text;
  }

 private:
  CallRecord Call() {
    const auto call = static_cast<DeviceCall>(random_() % kObserved);
    CallRecord record = RecordOf(call, Number(), Number(), Number());
    record.device = static_cast<std::int32_t>(random_() % 2);
    record.stream_uid = random_() % 4;
    record.thread = random_() % 3;
    record.node = random_() % 3;
    record.status =
        random_() % 8 == 0 ? Status::kInvalidValue : Status::kSuccess;
    return record;
  }
  std::uint64_t Number() {
    constexpr std::uint64_t kMost = std::numeric_limits<std::uint64_t>::max();
    constexpr std::array<std::uint64_t, 12> kNumbers = {
        0, 0, 1, 1, 2, 2, 3, 256, 4096, 8192, kMost - 4096, kMost};
    return kNumbers[random_() % kNumbers.size()];
  }

  std::mt19937_64 random_;
};

TEST(CallsFuzzTest, AnyCallsAreCheckedOrRefused) {
  const std::uint64_t traces = StressOperations(kTraces);
  AnyCalls calls(StressSeed());
  std::uint64_t checked = 0;
  for (std::uint64_t i = 0; i < traces; ++i) {
    ASSERT_NO_THROW(checked += CheckAnyCalls(calls.Trace()) ? 1 : 0) << i;
  }
  EXPECT_GT(checked, traces / 100);
}

}  // namespace
}  // namespace strata
