#include "strata/tools/replay_row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/tests/tools/trace_text.h"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

ReplayRow RowOf(const Trace& trace, std::uint64_t capacity_bytes,
                ReplaySettings settings) {
  Options options;
  options.allocator_strategy = "direct";
  options.platform.platform = "sim";
  options.platform.sim_memory_bytes = capacity_bytes;
  return MakeReplayRow(trace, options, settings, [](const std::string&) {});
}

nlohmann::json JsonOf(const ReplayRow& row) {
  return nlohmann::json::parse(ToJson({row})).at(0);
}

TEST(ReplayRowTest, HasTheKeysThatProgramsReadInOrder) {
  const auto json = nlohmann::ordered_json::parse(
      ToJson({RowOf(TraceOf("+a 3145728"), 8 * kFrame, {})}));
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.at(0).items()) keys.push_back(key);
  EXPECT_THAT(keys,
              ElementsAre("trace", "strategy", "operations", "failures_skipped",
                          "peak_live_bytes", "peak_reserved_bytes",
                          "reserved_ratio", "fit_bytes", "fit_ratio",
                          "fit_failures_above", "device_calls",
                          "modelled_device_us", "ns_per_op", "oom", "failure"));
}

TEST(ReplayRowTest, CountsManagedMemory) {
  const Trace trace = TraceOf("+a 3145728, -a, +b 1048576, +c 1048576");
  Options options;
  options.platform.platform = "sim";
  options.platform.sim_memory_bytes = 8 * kFrame;
  options.allocator_strategy = "direct";
  options.use_cuda_managed_memory = true;
  const auto no_progress = [](const std::string&) {};
  const ReplayRow row = MakeReplayRow(trace, options, {}, no_progress);
  EXPECT_EQ(row.result.peak_reserved_bytes, 3145728U);
  ReplaySettings fit;
  fit.fit = true;
  try {
    MakeReplayRow(trace, options, fit, no_progress);
    FAIL() << "nothing thrown";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), HasSubstr("--fit: direct has managed memory"));
  }
}

TEST(ReplayRowTest, HasTheNumbersOfTheRun) {
  const Trace trace = TraceOf("+a 3145728, -a, +b 1048576");
  const auto json = JsonOf(RowOf(trace, 8 * kFrame, {}));
  EXPECT_EQ(json["trace"], "test.csv");
  EXPECT_EQ(json["strategy"], "direct");
  EXPECT_EQ(json["operations"], 3);
  EXPECT_EQ(json["peak_live_bytes"], 3145728);
  EXPECT_EQ(json["peak_reserved_bytes"], 2 * kFrame);
  EXPECT_DOUBLE_EQ(json["reserved_ratio"], 4.0 / 3);
  EXPECT_TRUE(json["fit_ratio"].is_null());
  EXPECT_TRUE(json["fit_failures_above"].is_null());
  EXPECT_EQ(json["device_calls"]["mem_alloc"], 2);
  EXPECT_FALSE(json["device_calls"].contains("mem_get_info"));
  EXPECT_GT(json["ns_per_op"], 0);
  EXPECT_EQ(json["oom"], false);
  EXPECT_TRUE(json["fit_bytes"].is_null());
  EXPECT_TRUE(json["failure"].is_null());
}

TEST(ReplayRowTest, UncheckedRunHasTheSameNumbers) {
  const Trace trace = TraceOf("+a 3145728, -a, +b 1048576 @4");
  auto checked = JsonOf(RowOf(trace, 8 * kFrame, {}));
  auto unchecked = JsonOf(RowOf(trace, 8 * kFrame, {.check = false}));
  checked.erase("ns_per_op");
  unchecked.erase("ns_per_op");
  EXPECT_EQ(checked, unchecked);
}

TEST(ReplayRowTest, FitIsTheSmallestDeviceOverPeakLive) {
  const Trace trace = TraceOf("+a 3145728, +b 3145728");
  const auto json = JsonOf(RowOf(trace, 64 * kFrame, {.fit = true}));
  EXPECT_EQ(json["fit_bytes"], 4 * kFrame);
  EXPECT_DOUBLE_EQ(json["fit_ratio"], 4.0 / 3);
  EXPECT_EQ(json["fit_failures_above"], 0);
}

TEST(ReplayRowTest, OutOfMemoryNamesTheLineAndStillFits) {
  const Trace trace = TraceOf("+a 3145728, +b 3145728");
  const ReplayRow row = RowOf(trace, 3 * kFrame, {.fit = true});
  const auto json = JsonOf(row);
  EXPECT_EQ(json["oom"], 3);
  EXPECT_THAT(json["failure"].get<std::string>(),
              StartsWith("test.csv:3: device: cannot allocate 3.0 MiB"));
  EXPECT_TRUE(json["reserved_ratio"].is_null());
  EXPECT_TRUE(json["ns_per_op"].is_null());
  EXPECT_EQ(json["peak_reserved_bytes"], 2 * kFrame);
  EXPECT_DOUBLE_EQ(json["fit_ratio"], 4.0 / 3);
}

TEST(ReplayRowTest, RatioOfNoBytesIsNull) {
  const auto json =
      JsonOf(RowOf(TraceOf("+a 0, -a"), 8 * kFrame, {.fit = true}));
  EXPECT_TRUE(json["reserved_ratio"].is_null());
  EXPECT_TRUE(json["fit_ratio"].is_null());
}

// No device of the simulated ones is large enough.
TEST(ReplayRowTest, AFitThatIsNotFoundIsSaid) {
  const ReplayRow row =
      RowOf(TraceOf("+a 5000000000000"), 8 * kFrame, {.fit = true});
  EXPECT_THAT(ToTable({row}), AllOf(HasSubstr("fits on"), HasSubstr("none")));
}

TEST(ReplayRowTest, TracesOfOneNameHaveTheirPaths) {
  ReplayRow one = RowOf(TraceOf("+a 256"), 8 * kFrame, {});
  ReplayRow other = one;
  one.trace = "x/t.v2.csv.gz";
  other.trace = "y/t.v3.csv.gz";
  EXPECT_THAT(ToTable({one, other}),
              AllOf(HasSubstr("t.v2  "), HasSubstr("t.v3  ")));
  other.trace = "y/t.v2.csv";
  EXPECT_THAT(ToTable({one, other}),
              AllOf(HasSubstr("x/t.v2.csv.gz"), HasSubstr("y/t.v2.csv")));
}

TEST(ReplayRowTest, TableShowsWhatThereIs) {
  const Trace trace = TraceOf("+a 3145728, +b 3145728");
  const ReplayRow plain = RowOf(trace, 64 * kFrame, {});
  EXPECT_THAT(ToTable({plain}), HasSubstr("1.333"));
  EXPECT_THAT(ToTable({plain}), HasSubstr("mem_alloc 2"));
  EXPECT_THAT(ToTable({plain}), Not(HasSubstr("fits on")));
  EXPECT_THAT(ToTable({plain}), Not(HasSubstr("out of memory")));
  const ReplayRow failed = RowOf(trace, 3 * kFrame, {.fit = true});
  EXPECT_THAT(ToTable({plain, failed}), HasSubstr("fits on"));
  EXPECT_THAT(ToTable({plain, failed}), HasSubstr("8.0 MiB"));
  EXPECT_THAT(ToTable({plain, failed}), HasSubstr("at line 3"));
}

}  // namespace
}  // namespace strata
