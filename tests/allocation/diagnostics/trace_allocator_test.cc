#include "strata/allocation/diagnostics/trace_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "strata/tests/testing/layers/failing_allocator.h"
#include "strata/tests/testing/layers/pool_place.h"
#include "strata/tests/testing/manual_clock.h"

namespace strata {
namespace {

using ::testing::ElementsAre;

using Row = std::vector<std::string>;

class TraceAllocatorTest : public ::testing::Test {
 protected:
  ~TraceAllocatorTest() override { std::remove(path_.c_str()); }

  // Closes the trace and reads it.
  std::vector<Row> Rows() {
    layer_.reset();
    sink_.reset();
    std::vector<Row> rows;
    std::ifstream file(path_);
    for (std::string line; std::getline(file, line);) {
      rows.emplace_back();
      std::istringstream cells(line);
      for (std::string cell; std::getline(cells, cell, ',');) {
        rows.back().push_back(cell);
      }
    }
    return rows;
  }

  static std::string Hex(const void* data) {
    std::ostringstream text;
    text << "0x" << std::hex << reinterpret_cast<std::uintptr_t>(data);
    return text.str();
  }

  PoolPlace place_;
  const std::string path_ = TemporaryPath("trace_test.csv");
  ManualClock clock_{std::chrono::hours(30)};
  std::shared_ptr<FailingAllocator> below_ =
      std::make_shared<FailingAllocator>(place_.pool());
  std::shared_ptr<TraceSink> sink_ = std::make_shared<TraceSink>(path_, clock_);
  std::shared_ptr<TraceAllocator> layer_ =
      std::make_shared<TraceAllocator>(below_, sink_);
};

TEST_F(TraceAllocatorTest, TheChainsOfAFacadeShareTheSink) {
  DecoratorOptions options;
  ChainContext context;
  context.facade_services = std::make_shared<SharedServices>();
  EXPECT_EQ(TraceSinkOf(options, context), nullptr);
  options.trace_path = path_;
  const auto sink = TraceSinkOf(options, context);
  EXPECT_EQ(TraceSinkOf(options, context), sink);
  context.facade_services = std::make_shared<SharedServices>();
  EXPECT_NE(TraceSinkOf(options, context), sink);
}

TEST_F(TraceAllocatorTest, WritesARowForEveryCallInOrder) {
  AllocationPtr first = layer_->Allocate(1000);
  const std::string address = Hex(first->data());
  clock_.Advance(std::chrono::microseconds(61'000'042));
  first.reset();
  below_->Fail({1, 1});
  Failure failure;
  EXPECT_EQ(layer_->AllocateOrNull(Request{77, 0, kNoRetry}, failure), nullptr);
  sink_->Released(DevicePlace(0));
  EXPECT_THAT(
      Rows(),
      ElementsAre(
          Row{"Thread", "Time", "Action", "Pointer", "Size", "Stream", "Place"},
          Row{"1", "30:00:00:000000", "allocate", address, "1000", "0",
              "device:0"},
          Row{"1", "30:01:01:000042", "free", address, "1000", "0", "device:0"},
          Row{"1", "30:01:01:000042", "allocate failure", "(nil)", "77", "0",
              "device:0"},
          Row{"1", "30:01:01:000042", "release", "(nil)", "0", "0",
              "device:0"}));
}

// A replay would report that the program ran out of memory.
TEST_F(TraceAllocatorTest, ARequestThatMustNotGrowLeavesNoRow) {
  below_->Fail({1, 1, Failure::Reason::kNoGrowth});
  Failure failure;
  EXPECT_EQ(layer_->AllocateOrNull(Request{77, 0, kNoRetry}, failure), nullptr);
  EXPECT_EQ(Rows().size(), 1U);
}

TEST_F(TraceAllocatorTest, ZeroBytesLeaveNoRow) {
  layer_->Allocate(0).reset();
  EXPECT_EQ(Rows().size(), 1U);
}

TEST_F(TraceAllocatorTest, NumbersThreadsAsTheyAppear) {
  AllocationPtr allocation = layer_->Allocate(1);
  std::thread([&] { allocation.reset(); }).join();
  const std::vector<Row> rows = Rows();
  EXPECT_EQ(rows.at(1).at(0), "1");
  EXPECT_EQ(rows.at(2).at(0), "2");
}

// A replay requires this: no address is allocated again before its free.
TEST_F(TraceAllocatorTest, ManyThreadsWriteWholeRowsInAPossibleOrder) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 200; ++i) layer_->Allocate(600).reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::vector<Row> rows = Rows();
  ASSERT_EQ(rows.size(), 1601U);
  std::map<std::string, bool> live;
  for (std::size_t i = 1; i < rows.size(); ++i) {
    ASSERT_EQ(rows[i].size(), 7U);
    bool& is_live = live[rows[i][3]];
    EXPECT_EQ(is_live, rows[i][2] == "free") << "row " << i;
    is_live = !is_live;
  }
}

TEST(TraceSinkTest, NamesTheFileItCannotWrite) {
  try {
    TraceSink sink("/nonexistent/trace.csv", Clock::Steady());
    FAIL() << "the folder does not exist";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("/nonexistent/trace.csv"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("No such file"));
  }
}

}  // namespace
}  // namespace strata
