#include "strata/tools/replay/replay_row.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/tests/tools/trace/trace_text.h"
#include "strata/tools/replay/replay_report.h"

namespace strata::tools {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

ReplayRow RowOf(const Trace& trace, std::uint64_t capacity_bytes,
                ReplaySettings settings) {
  Options options;
  options.allocator_strategy = "direct";
  options.platform.platform = "sim";
  options.platform.sim_memory_bytes = capacity_bytes;
  return MakeReplayRow(trace, options, settings, [](const std::string&) {});
}

std::string JsonText(const ReplayRow& row) {
  TraceReport report;
  report.rows.push_back(row);
  return ToJson({report});
}

nlohmann::json JsonOf(const ReplayRow& row) {
  return nlohmann::json::parse(JsonText(row)).at(0);
}

TEST(ReplayRowTest, HasTheKeysThatProgramsReadInOrder) {
  const auto json = nlohmann::ordered_json::parse(
      JsonText(RowOf(TraceOf("+a 3145728"), 8 * kFrame, {})));
  std::vector<std::string> keys;
  for (const auto& [key, value] : json.at(0).items()) keys.push_back(key);
  EXPECT_THAT(
      keys, ElementsAre(
                "trace", "strategy", "operations", "failures_skipped",
                "peak_live_bytes", "peak_reserved_bytes", "reserved_ratio",
                "fit_bytes", "fit_ratio", "fit_failures_above", "device_calls",
                "modelled_device_us", "ns_per_op", "oom", "failure", "skipped",
                "may_be_wrong", "device_bytes", "recorded_device_bytes",
                "recorded_failures", "recorded_failures_served", "releases",
                "passes", "passes_done", "jitter_percent", "first_pass",
                "last_pass", "pass_samples", "chosen_by_auto"));
}

TEST(ReplayRowTest, KeysOfPassesAreNullWithoutThem) {
  const auto json = JsonOf(RowOf(TraceOf("+a 3145728"), 8 * kFrame, {}));
  EXPECT_TRUE(json["passes"].is_null());
  EXPECT_TRUE(json["first_pass"].is_null());
  EXPECT_TRUE(json["pass_samples"].is_null());
}

TEST(ReplayRowTest, HasTheNumbersOfThePasses) {
  ReplaySettings settings;
  settings.plan.passes = 12;
  settings.plan.jitter_ppm = 25'000;
  const auto json =
      JsonOf(RowOf(TraceOf("+a 2097152, -a"), 8 * kFrame, settings));
  EXPECT_EQ(json["passes"], 12);
  EXPECT_EQ(json["passes_done"], 12);
  EXPECT_EQ(json["jitter_percent"], 2.5);
  EXPECT_EQ(json["first_pass"]["pass"], 1);
  EXPECT_EQ(json["first_pass"]["device_calls"]["mem_alloc"], 1);
  EXPECT_EQ(json["first_pass"]["longest_request_us"], 44.18);
  EXPECT_EQ(json["first_pass"]["peak_reserved_bytes"], kFrame);
  EXPECT_GT(json["first_pass"]["modelled_device_us"], 44.18 + 37.5);
  EXPECT_EQ(json["last_pass"]["pass"], 12);
  ASSERT_EQ(json["pass_samples"].size(), 11U);
  EXPECT_EQ(json["pass_samples"][0], json["first_pass"]);
  EXPECT_EQ(json["pass_samples"][10], json["last_pass"]);
}

TEST(ReplayRowTest, FailureInALaterPassNamesThePass) {
  ReplaySettings settings;
  settings.plan.passes = 1000;
  settings.plan.jitter_ppm = kMostJitterPpm;
  const ReplayRow row = RowOf(TraceOf("+a 2097152, -a"), kFrame, settings);
  const std::string place =
      "test.csv:2, pass " + std::to_string(row.result.failed_pass) + ": ";
  EXPECT_GT(row.result.failed_pass, 1U);
  EXPECT_THAT(JsonOf(row)["failure"].get<std::string>(), StartsWith(place));
}

TEST(ReplayRowTest, FirstPassThatFailsHasNoSample) {
  ReplaySettings settings;
  settings.plan.passes = 2;
  const auto json = JsonOf(RowOf(TraceOf("+a 2097153"), kFrame, settings));
  EXPECT_EQ(json["passes_done"], 0);
  EXPECT_TRUE(json["first_pass"].is_null());
  EXPECT_TRUE(json["pass_samples"].empty());
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
  EXPECT_TRUE(json["skipped"].empty());
  EXPECT_EQ(json["may_be_wrong"], false);
  EXPECT_EQ(json["device_bytes"], 8 * kFrame);
  EXPECT_TRUE(json["recorded_device_bytes"].is_null());
  EXPECT_EQ(json["recorded_failures"], 0);
  EXPECT_EQ(json["releases"], 0);
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

// 2 MiB of the 4 MiB are free: enough for the first request, not the second.
TEST(ReplayRowTest, RequestsThatFailedWhenRecordedAreTriedAgain) {
  const Trace trace = TraceOf("+a 2097152, ?b 2097152, ?c 2097153, -a");
  EXPECT_EQ(trace.peak_live_bytes, 4194305U);
  const ReplayRow row = RowOf(trace, 2 * kFrame, {});
  EXPECT_FALSE(row.failed_line);
  EXPECT_EQ(row.result.failed_tries, 1U);
  EXPECT_EQ(row.result.first_failed_try, 2U);
  EXPECT_EQ(row.trace.tries, 2U);
  EXPECT_EQ(row.trace.first_try_line, 3U);
  EXPECT_EQ(row.trace.first_try_bytes, 2097152U);
  const auto json = JsonOf(row);
  EXPECT_EQ(json["recorded_failures"], 2);
  EXPECT_EQ(json["recorded_failures_served"], 1);
  EXPECT_TRUE(json["reserved_ratio"].is_null());
  EXPECT_EQ(json["operations"], 4);
}

TEST(ReplayRowTest, FitServesWhatFailedWhenRecorded) {
  const Trace trace = TraceOf("+a 2097152, ?b 6291456, -a");
  const ReplayRow row = RowOf(trace, 2 * kFrame, {.fit = true});
  EXPECT_EQ(row.fit->capacity_bytes, 4 * kFrame);
  EXPECT_EQ(row.FitRatio(), 1.0);
}

TEST(ReplayRowTest, RecordedRowHasTheSegmentsOfTheSnapshot) {
  Trace trace = TraceOf("+a 2097152");
  EXPECT_FALSE(MakeRecordedRow(trace, {}));
  trace.recorded.peak_reserved_bytes = 3 * kFrame;
  trace.recorded.device_bytes = 5 * kFrame;
  const auto json = JsonOf(*MakeRecordedRow(trace, {}));
  EXPECT_EQ(json["strategy"], "recorded");
  EXPECT_EQ(json["peak_reserved_bytes"], 3 * kFrame);
  EXPECT_EQ(json["reserved_ratio"], 3.0);
  EXPECT_EQ(json["device_bytes"], 5 * kFrame);
  EXPECT_TRUE(json["ns_per_op"].is_null());
}

}  // namespace
}  // namespace strata::tools
