// Per-thread default streams, which end with their threads.

#include "strata/facade/thread_ends.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include "strata/tests/facade/facade_fixture.h"
#include "strata/tests/testing/at_thread_end.h"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Stream OwnStream(std::uint64_t uid) {
  return Stream{reinterpret_cast<void*>(kPerThreadHandle), 0, uid};
}

class ThreadEndsTest : public ::testing::Test {
 protected:
  std::shared_ptr<ThreadEnds> MakeEnds() {
    return std::make_shared<ThreadEnds>([this](const Stream& stream) {
      ended_.push_back(stream.uid);
      thread_ = std::this_thread::get_id();
    });
  }

  std::vector<std::uint64_t> ended_;
  std::thread::id thread_;
};

TEST_F(ThreadEndsTest, EachStreamIsToldOfOnceByItsThread) {
  const auto ends = MakeEnds();
  std::thread thread([&] {
    for (const std::uint64_t uid : {7U, 8U, 7U}) ends->Watch(OwnStream(uid));
    EXPECT_THAT(ended_, IsEmpty());
  });
  const std::thread::id id = thread.get_id();
  thread.join();
  EXPECT_THAT(ended_, ElementsAre(8, 7));
  EXPECT_EQ(thread_, id);
}

TEST_F(ThreadEndsTest, NobodyIsToldOnceItIsClosed) {
  auto closed = MakeEnds();
  std::thread([&] {
    closed->Watch(OwnStream(7));
    closed->Close();
    closed.reset();
    MakeEnds()->Watch(OwnStream(8));
  }).join();
  EXPECT_THAT(ended_, ElementsAre(8));
}

// The destructor of another thread-local object may still allocate.
TEST_F(ThreadEndsTest, AThreadThatHasToldIsNotWatchedAgain) {
  const auto ends = MakeEnds();
  std::thread([&] {
    AtThreadEnd([&] { ends->Watch(OwnStream(9)); });
    ends->Watch(OwnStream(7));
  }).join();
  EXPECT_THAT(ended_, ElementsAre(7));
}

TEST_F(ThreadEndsTest, WhatACallBackThrowsIsLogged) {
  const auto ends = std::make_shared<ThreadEnds>(
      [](const Stream&) { throw std::runtime_error("on purpose"); });
  ::testing::internal::CaptureStderr();
  std::thread([&] { ends->Watch(OwnStream(7)); }).join();
  EXPECT_THAT(::testing::internal::GetCapturedStderr(),
              ::testing::HasSubstr("on purpose"));
}

class PerThreadStreamTest : public FacadeFixture {
 protected:
  PerThreadStreamTest() : FacadeFixture(1, "manual") {}

  // Runs `act` in a separate thread, and joins it.
  template <class Act>
  void InThread(Act act) {
    std::thread([&] { act(device().PerThreadStream()); }).join();
  }
  // Number of strategies of all chains.
  std::size_t Strategies() {
    class Counter final : public AllocatorVisitor {
     public:
      void VisitLayer(const Allocator& layer) override {
        count += std::string_view(layer.name()) == "auto_growth";
      }
      std::size_t count = 0;
    } counter;
    facade().AcceptAll(kPlace, counter);
    return counter.count;
  }
};

TEST_F(PerThreadStreamTest, NoChainStaysOfAThreadThatHasEnded) {
  Build("allocator_strategy=auto_growth");
  const std::size_t before = Strategies();
  for (int i = 0; i < 10; ++i) {
    InThread([&](Stream own) {
      facade().Alloc(kPlace, 1000, own).reset();
      EXPECT_EQ(Strategies(), before + 1);
    });
    EXPECT_EQ(Strategies(), before);
  }
  EXPECT_EQ(facade().GetStats(kPlace).allocations, 10U);
}

// M3: the pending work of the stream completes before the next work of the
// device that uses its memory.
TEST_F(PerThreadStreamTest, ItsWorkComesBeforeThatOfWhoHasItsMemoryNext) {
  Build("allocator_strategy=auto_growth");
  void* used = nullptr;
  InThread([&](Stream own) {
    const AllocationPtr block = facade().Alloc(kPlace, Mebibytes(12), own);
    used = block->data();
    EXPECT_EQ(device().Enqueue(own, nullptr, 0, 1000, 0), Status::kSuccess);
  });
  const Stream other = NewStream();
  const AllocationPtr next = facade().Alloc(kPlace, Mebibytes(12), other);
  EXPECT_EQ(next->data(), used);
  EXPECT_EQ(Count(DeviceCall::kStreamWaitEvent), 1U);
  device().StepAll();
}

TEST_F(PerThreadStreamTest, WhatOthersHoldOfItStaysValid) {
  Build();
  AllocationPtr kept;
  InThread([&](Stream own) { kept = facade().Alloc(kPlace, 1000, own); });
  EXPECT_EQ(facade().GetStats(kPlace).requested_bytes, 1000U);
  kept.reset();
  EXPECT_EQ(facade().GetStats(kPlace).requested_bytes, 0U);
  device().StepAll();
  facade().Release(kPlace);
  EXPECT_EQ(facade().GetStats(kPlace).reserved_bytes, 0U);
}

TEST_F(PerThreadStreamTest, ItMayOutliveTheFacade) {
  InThread([&](Stream own) {
    Build();
    facade().Alloc(kPlace, 1000, own).reset();
    facade_.reset();
  });
}

TEST_F(PerThreadStreamTest, AsTheDefaultOfAPlaceItStays) {
  Build();
  InThread([&](Stream own) {
    facade().SetDefaultStream(kPlace, own);
    facade().Alloc(kPlace, 1000).reset();
  });
  EXPECT_EQ(facade().GetStats(kPlace).allocations, 1U);
  facade().Release(kPlace);
}

TEST_F(PerThreadStreamTest, NobodyAnnouncesItsEnd) {
  Build();
  EXPECT_THROW(facade().StreamDestroyed(device().PerThreadStream()),
               std::invalid_argument);
}

}  // namespace
}  // namespace strata
