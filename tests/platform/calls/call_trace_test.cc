#include "strata/platform/calls/call_trace.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "strata/platform/device.h"
#include "strata/platform/device_work.h"
#include "strata/platform/registry.h"

namespace strata {
namespace {

class CallTraceTest : public testing::Test {
 protected:
  CallTraceTest()
      : path_(testing::TempDir() + "call_trace_" + std::to_string(getpid()) +
              "_" +
              testing::UnitTest::GetInstance()->current_test_info()->name() +
              ".csv") {
    options_.platform = "sim";
    options_.sim_devices = 2;
    options_.device_trace_path = path_;
  }
  ~CallTraceTest() override { std::remove(path_.c_str()); }

  // The lines of the file so far.
  std::vector<std::string> Lines() const {
    std::ifstream file(path_);
    std::vector<std::string> lines;
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  const std::string path_;
  PlatformOptions options_;
};

std::vector<std::string> Fields(const std::string& line) {
  std::istringstream text(line);
  std::vector<std::string> fields;
  for (std::string field; std::getline(text, field, ',');) {
    fields.push_back(field);
  }
  return fields;
}

// Some calls of each kind, including refused ones.
void Exercise(Device& device) {
  DevicePtr ptr = 0;
  Stream stream;
  Event event;
  device.StreamCreate(&stream, kStreamNonBlocking);
  device.EventCreate(&event, kEventDisableTiming);
  device.MemAlloc(&ptr, 4096);
  device.MemsetAsync(ptr, 7, 4096, stream);
  device.EventRecord(event, stream, 0);
  device.MemFree(1);
  device.EventSynchronize(event);
  device.MemFree(ptr);
  device.EventDestroy(event);
  device.StreamDestroy(stream);
}

TEST_F(CallTraceTest, EveryFieldIsInItsColumn) {
  CallRecord record;
  record.call = DeviceCall::kMemcpyAsync;
  record.device = 3;
  record.ptr = 0xabcdef;
  record.bytes = 4096;
  record.value = 0x1234;
  record.stream_uid = ~std::uint64_t{0};
  record.status = Status::kIllegalAddress;
  record.time_ns = 17;
  record.thread = 5;
  record.node = 0xfe;
  EXPECT_EQ(ToCsv(record),
            "17,5,3,memcpy_async,0xabcdef,4096,0x1234,18446744073709551615,700,"
            "0xfe");
  EXPECT_EQ(Fields(kCallTraceHeader).size(), Fields(ToCsv(record)).size());
}

TEST_F(CallTraceTest, HasALineForEachCallInOrder) {
  {
    const auto platform = MakePlatform(options_);
    Exercise(platform->device(0));
  }
  const std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), 11u);
  EXPECT_EQ(lines[0], kCallTraceHeader);
  const char* const calls[] = {"stream_create",    "event_create", "mem_alloc",
                               "memset_async",     "event_record", "mem_free",
                               "event_synchronize"};
  for (std::size_t i = 0; i < std::size(calls); ++i) {
    EXPECT_EQ(Fields(lines[i + 1])[3], calls[i]);
  }
}

TEST_F(CallTraceTest, ShowsHowACallEnded) {
  {
    const auto platform = MakePlatform(options_);
    platform->device(0).MemFree(1);
  }
  ASSERT_EQ(Lines().size(), 2u);
  EXPECT_EQ(Fields(Lines()[1])[8], "1");
}

TEST_F(CallTraceTest, HasALineForEachRangeThatWorkTouches) {
  {
    const auto platform = MakePlatform(options_);
    Device& device = platform->device(0);
    DevicePtr ptr = 0;
    device.MemAlloc(&ptr, 4096);
    const WorkRange ranges[] = {{ptr, 64, false}, {ptr + 64, 128, true}};
    platform->work(0)->Enqueue(device.LegacyStream(), ranges, 2, 0, 7);
    // Refused: it has no effect.
    platform->work(0)->Enqueue(Stream(), ranges, 2, 0, 7);
  }
  const std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), 4u);
  EXPECT_EQ(Fields(lines[2])[3], "use");
  EXPECT_EQ(Fields(lines[2])[5], "64");
  EXPECT_EQ(Fields(lines[2])[6], "0x0");
  EXPECT_EQ(Fields(lines[3])[5], "128");
  EXPECT_EQ(Fields(lines[3])[6], "0x1");
  EXPECT_EQ(Fields(lines[3])[7], Fields(lines[2])[7]);
}

TEST_F(CallTraceTest, TellsTheDevicesApart) {
  {
    const auto platform = MakePlatform(options_);
    DevicePtr ptr = 0;
    platform->device(1).MemAlloc(&ptr, 512);
    platform->device(0).Synchronize();
  }
  ASSERT_EQ(Lines().size(), 3u);
  EXPECT_EQ(Fields(Lines()[1])[2], "1");
  EXPECT_EQ(Fields(Lines()[2])[2], "0");
}

TEST_F(CallTraceTest, KeepsEveryLineOfManyThreadsWhole) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 200;
  {
    const auto platform = MakePlatform(options_);
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&] {
        for (int round = 0; round < kRounds; ++round) {
          Exercise(platform->device(0));
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }
  std::set<std::string> threads_seen;
  const std::vector<std::string> lines = Lines();
  ASSERT_EQ(lines.size(), std::size_t{1 + 10 * kThreads * kRounds});
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const std::vector<std::string> fields = Fields(lines[i]);
    ASSERT_EQ(fields.size(), 10u) << lines[i];
    threads_seen.insert(fields[1]);
  }
  EXPECT_EQ(threads_seen.size(), std::size_t{kThreads});
}

TEST_F(CallTraceTest, IsTheSameForTheSameSeed) {
  options_.sim_faults = "mem_alloc:probability=0.5,status=MemoryAllocation";
  std::vector<std::vector<std::string>> runs;
  for (const std::uint64_t seed : {7U, 7U, 8U}) {
    options_.sim_seed = seed;
    {
      const auto platform = MakePlatform(options_);
      for (int i = 0; i < 64; ++i) {
        DevicePtr ptr = 0;
        platform->device(0).MemAlloc(&ptr, 4096);
      }
    }
    runs.push_back(Lines());
  }
  EXPECT_EQ(runs[0].size(), 65u);
  EXPECT_EQ(runs[0], runs[1]);
  EXPECT_NE(runs[0], runs[2]);
}

TEST_F(CallTraceTest, FileThatCannotBeWrittenIsNamed) {
  options_.device_trace_path = "/nonexistent/trace.csv";
  try {
    MakePlatform(options_);
    FAIL() << "nothing thrown";
  } catch (const std::invalid_argument& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("strata_device_trace_file"), std::string::npos);
    EXPECT_NE(message.find("/nonexistent/trace.csv"), std::string::npos);
  }
}

TEST_F(CallTraceTest, FullDiskIsReported) {
  testing::internal::CaptureStderr();
  CallTrace("/dev/full").Write(CallRecord());
  EXPECT_NE(testing::internal::GetCapturedStderr().find("/dev/full"),
            std::string::npos);
}

}  // namespace
}  // namespace strata
