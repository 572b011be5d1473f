#include "strata/allocation/diagnostics/events_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "strata/allocation/diagnostics/annotation.h"
#include "strata/base/size.h"
#include "strata/tests/testing/layers/failing_allocator.h"
#include "strata/tests/testing/layers/pool_place.h"
#include "strata/tests/testing/manual_clock.h"

namespace strata {
namespace {

using Json = nlohmann::json;

PoolPlaceOptions LimitedPlace() {
  PoolPlaceOptions options;
  options.limit_bytes = Mebibytes(64);
  return options;
}

// Over the chunk pool: the layers then report the numbers of the pool.
class EventsAllocatorTest : public ::testing::Test {
 protected:
  ~EventsAllocatorTest() override { std::remove(path_.c_str()); }

  // Closes the file and reads it. It must be valid JSON.
  Json Events() {
    layer_.reset();
    sink_.reset();
    std::ifstream file(path_);
    return Json::parse(file);
  }

  PoolPlace place_{LimitedPlace()};
  const std::string path_ = TemporaryPath("events_test.json");
  ManualClock clock_{std::chrono::nanoseconds(1'500)};
  std::shared_ptr<FailingAllocator> below_ =
      std::make_shared<FailingAllocator>(place_.pool());
  std::shared_ptr<EventSink> sink_ = std::make_shared<EventSink>(path_, clock_);
  std::shared_ptr<EventsAllocator> layer_ =
      std::make_shared<EventsAllocator>(below_, sink_);
};

// tf_bfc R56: instant events with these names and fields.
TEST_F(EventsAllocatorTest, R56AllocationAndFreeAreInstantsOfOneId) {
  AllocationPtr allocation = layer_->Allocate(1000);
  const std::size_t size = allocation->size();
  std::ostringstream address;
  address << allocation->data();
  clock_.Advance(std::chrono::nanoseconds(2'007));
  allocation.reset();

  const Json events = Events();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0]["name"], "MemoryAllocation");
  EXPECT_EQ(events[1]["name"], "MemoryDeallocation");
  EXPECT_EQ(events[0]["ts"], 1.5);
  EXPECT_EQ(events[1]["ts"], 3.507);
  for (const Json& event : events) {
    EXPECT_EQ(event["ph"], "i");
    EXPECT_EQ(event["s"], "t");
    const Json& args = event["args"];
    EXPECT_EQ(args["id"], 1);
    EXPECT_EQ(args["place"], "device:0");
    EXPECT_EQ(args["addr"], address.str());
    EXPECT_EQ(args["requested_bytes"], 1000);
    EXPECT_EQ(args["allocation_bytes"], size);
    EXPECT_EQ(args["peak_bytes_in_use"], size);
  }
  EXPECT_EQ(events[0]["args"]["bytes_allocated"], size);
  EXPECT_EQ(events[1]["args"]["bytes_allocated"], 0);
}

// tf_bfc R56: available = limit - in use.
TEST_F(EventsAllocatorTest, R56LevelsAreThoseOfThePool) {
  AllocationPtr first = layer_->Allocate(Mebibytes(2));
  AllocationPtr second = layer_->Allocate(Mebibytes(4));
  first.reset();
  second.reset();
  const Json events = Events();
  ASSERT_EQ(events.size(), 4U);
  const Json& args = events[1]["args"];
  EXPECT_EQ(args["bytes_reserved"], Mebibytes(6));
  EXPECT_EQ(args["bytes_allocated"], Mebibytes(6));
  EXPECT_EQ(args["bytes_available"], Mebibytes(58));
  EXPECT_EQ(events[2]["args"]["bytes_available"], Mebibytes(60));
  EXPECT_EQ(events[2]["args"]["peak_bytes_in_use"], Mebibytes(6));
}

TEST_F(EventsAllocatorTest, FailuresAndZeroBytesLeaveNoEvent) {
  layer_->Allocate(0).reset();
  below_->Fail({1, 1});
  Failure failure;
  EXPECT_EQ(layer_->AllocateOrNull(Request{77, 0, kNoRetry}, failure), nullptr);
  EXPECT_TRUE(Events().empty());
}

TEST_F(EventsAllocatorTest, AnEventSaysWhatItsThreadWasDoing) {
  AllocationPtr allocation;
  {
    const ScopedAnnotation op("Mat\"Mul\"\n");
    SetAnnotationStep(7);
    allocation = layer_->Allocate(1);
    SetAnnotationStep(-1);
  }
  allocation.reset();
  const Json events = Events();
  EXPECT_EQ(events[0]["args"]["op"], "Mat\"Mul\"\n");
  EXPECT_EQ(events[0]["args"]["step"], 7);
  EXPECT_FALSE(events[1]["args"].contains("op"));
  EXPECT_FALSE(events[1]["args"].contains("step"));
}

TEST_F(EventsAllocatorTest, TellsThreadsApart) {
  AllocationPtr allocation = layer_->Allocate(1);
  std::thread([&] { allocation.reset(); }).join();
  const Json events = Events();
  EXPECT_NE(events[0]["tid"], events[1]["tid"]);
  EXPECT_EQ(events[0]["pid"], events[1]["pid"]);
}

// No address and no id is live twice, and the levels add up in every order.
TEST_F(EventsAllocatorTest, ManyThreadsWriteEventsInAPossibleOrder) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this] {
      for (int i = 0; i < 100; ++i) layer_->Allocate(600).reset();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const Json events = Events();
  ASSERT_EQ(events.size(), 800U);
  std::map<std::string, std::uint64_t> live;  // id by address
  std::set<std::uint64_t> ids;
  std::uint64_t bytes = 0;
  for (const Json& event : events) {
    const Json& args = event["args"];
    const std::string address = args["addr"];
    const std::uint64_t id = args["id"];
    const std::uint64_t size = args["allocation_bytes"];
    if (event["name"] == "MemoryAllocation") {
      EXPECT_TRUE(live.emplace(address, id).second);
      EXPECT_TRUE(ids.insert(id).second);
      bytes += size;
    } else {
      EXPECT_EQ(live[address], id);
      live.erase(address);
      bytes -= size;
    }
    EXPECT_EQ(args["bytes_allocated"], bytes);
  }
  EXPECT_TRUE(live.empty());
}

TEST_F(EventsAllocatorTest, AFileWithoutEventsIsAnEmptyList) {
  EXPECT_EQ(Events(), Json::array());
}

TEST(EventSinkTest, NamesTheFileItCannotWrite) {
  try {
    const EventSink sink("/nonexistent/events.json", Clock::Steady());
    FAIL() << "the folder does not exist";
  } catch (const std::invalid_argument& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("/nonexistent/events.json"));
    EXPECT_THAT(error.what(), ::testing::HasSubstr("No such file"));
  }
}

}  // namespace
}  // namespace strata
