#include "strata/facade/usage_log.h"

#include <glog/logging.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(UsageLineTest, ShowsBothPeaksInTheUnitAskedFor) {
  Stats stats;
  stats.peak_reserved_bytes = Mebibytes(34);
  stats.peak_in_use_bytes = Mebibytes(20) + Kibibytes(512);
  EXPECT_EQ(UsageLine(DevicePlace(1), stats, true),
            "device:1: peak reserved 34.0 MiB, peak in use 20.5 MiB");
  EXPECT_EQ(UsageLine(DevicePlace(1), stats, false),
            "device:1: peak reserved 35651584 bytes, peak in use 21495808 "
            "bytes");
  stats.peak_in_use_bytes = Mebibytes(1) - 1;
  EXPECT_EQ(UsageLine(DevicePlace(0), stats, true),
            "device:0: peak reserved 34.0 MiB, peak in use 1.0 MiB");
  stats.peak_in_use_is_bound = true;
  EXPECT_EQ(UsageLine(DevicePlace(0), stats, true),
            "device:0: peak reserved 34.0 MiB, peak in use at most 1.0 MiB");
}

// Stores the log lines written during its lifetime.
class LogKeeper final : public google::LogSink {
 public:
  LogKeeper() { google::AddLogSink(this); }
  LogKeeper(const LogKeeper&) = delete;
  LogKeeper& operator=(const LogKeeper&) = delete;
  ~LogKeeper() override { google::RemoveLogSink(this); }

  void send(google::LogSeverity severity, const char* /*full_filename*/,
            const char* /*base_filename*/, int /*line*/,
            const struct ::tm* /*time*/, const char* message,
            std::size_t message_len) override {
    if (severity == google::GLOG_INFO) {
      lines.emplace_back(message, message_len);
    }
  }

  std::vector<std::string> lines;
};

class UsageLogTest : public FacadeFixture {
 protected:
  UsageLogTest() : FacadeFixture(2) {}

  // The lines logged when a facade is destroyed that had 20 MiB of device 0 in
  // use.
  std::vector<std::string> LinesOf(const std::string& options) {
    Build("auto_growth_chunk_rule=exact," + options);
    facade().Alloc(DevicePlace(0), Mebibytes(20)).reset();
    facade().Alloc(HostPlace(), 1000).reset();
    const LogKeeper log;
    facade_.reset();
    return log.lines;
  }
};

// paddle.md §3.13-4. An unused device is not mentioned.
TEST_F(UsageLogTest, LogsThePeaksOfTheDevicesUsedWhenTheFacadeGoes) {
  EXPECT_THAT(LinesOf("enable_gpu_memory_usage_log"),
              ElementsAre("device:0: peak reserved 20.0 MiB, peak in use 20.0 "
                          "MiB"));
}

TEST_F(UsageLogTest, CountsInBytesIfAsked) {
  EXPECT_THAT(
      LinesOf("enable_gpu_memory_usage_log,enable_gpu_memory_usage_log_mb=0"),
      ElementsAre("device:0: peak reserved 20971520 bytes, peak in use "
                  "20971520 bytes"));
}

TEST_F(UsageLogTest, SaysNothingByDefault) {
  EXPECT_THAT(LinesOf(""), IsEmpty());
}

// The facade of the process is never destroyed.
TEST(UsageLogDeathTest, TheFacadeOfTheProcessLogsAtExit) {
  EXPECT_EXIT(
      {
        google::LogToStderr();
        AllocatorFacade& facade = AllocatorFacade::InitInstance(
            Options::Parse("strata_platform=sim,enable_gpu_memory_usage_log"));
        facade.Alloc(DevicePlace(0), Mebibytes(20)).reset();
        std::exit(0);
      },
      testing::ExitedWithCode(0), "device:0: peak reserved 20.0 MiB");
}

}  // namespace
}  // namespace strata
