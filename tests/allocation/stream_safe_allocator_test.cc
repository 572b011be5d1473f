#include "strata/allocation/stream_safe_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "strata/tests/testing/counting_allocator.h"
#include "strata/tests/testing/pool_place.h"

namespace strata {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

class StreamSafeAllocatorTest : public ::testing::Test {
 protected:
  StreamSafeAllocatorTest() {
    place_.device().SetCallObserver([this](const CallRecord& call) {
      if (call.call == DeviceCall::kStreamSynchronize) {
        waited_.push_back(call.stream_uid);
        live_while_waiting_.push_back(below_->live());
      } else if (call.call == DeviceCall::kSynchronize) {
        ++device_waits_;
      }
    });
  }
  ~StreamSafeAllocatorTest() override {
    place_.device().SetCallObserver(nullptr);
  }

  AllocationPtr Marked(std::initializer_list<Stream> streams) {
    AllocationPtr allocation = layer_.Allocate(1000);
    for (const Stream stream : streams) {
      EXPECT_TRUE(layer_.RecordStream(allocation.get(), stream));
    }
    return allocation;
  }

  PoolPlace place_;
  std::shared_ptr<CountingAllocator> below_ =
      std::make_shared<CountingAllocator>(place_.pool());
  std::shared_ptr<ChainStream> own_ = place_.NewChainStream();
  Stream a_ = place_.NewStream();
  Stream b_ = place_.NewStream();
  StreamSafeAllocator layer_{below_, place_.platform(), own_};
  std::vector<std::uint64_t> waited_;
  std::vector<std::uint64_t> live_while_waiting_;
  int device_waits_ = 0;
};

// paddle.md §3.6 rule 1.
TEST_F(StreamSafeAllocatorTest, WithoutMarksNothingIsWaitedFor) {
  const std::uint64_t calls =
      place_.device().CallCount(DeviceCall::kEventRecord);
  layer_.Allocate(1000).reset();
  EXPECT_THAT(waited_, IsEmpty());
  EXPECT_EQ(place_.device().CallCount(DeviceCall::kEventRecord), calls);
}

TEST_F(StreamSafeAllocatorTest, WaitsForEveryMarkedStreamBeforeTheFree) {
  Marked({a_, b_}).reset();
  EXPECT_THAT(waited_, UnorderedElementsAre(a_.uid, b_.uid));
  EXPECT_THAT(live_while_waiting_, ElementsAre(1, 1));
  EXPECT_EQ(below_->live(), 0U);
}

TEST_F(StreamSafeAllocatorTest, AStreamIsWaitedForOnce) {
  Marked({a_, a_}).reset();
  EXPECT_THAT(waited_, ElementsAre(a_.uid));
}

// paddle.md §3.6 rule 2.
TEST_F(StreamSafeAllocatorTest, ItsOwnStreamNeedsNoMark) {
  AllocationPtr allocation = layer_.Allocate(1000);
  EXPECT_FALSE(layer_.RecordStream(allocation.get(), own_->stream()));
  EXPECT_FALSE(layer_.RecordStream(allocation.get(), Stream()));
  layer_.Free(std::move(allocation), own_->stream());
  EXPECT_THAT(waited_, IsEmpty());
}

TEST_F(StreamSafeAllocatorTest, FreeingOnAnotherStreamWaitsForIt) {
  layer_.Free(layer_.Allocate(1000), a_);
  EXPECT_THAT(waited_, ElementsAre(a_.uid));
  EXPECT_EQ(below_->live(), 0U);
}

TEST_F(StreamSafeAllocatorTest, AnErasedMarkIsNotWaitedFor) {
  AllocationPtr allocation = Marked({a_, b_});
  layer_.EraseStream(allocation.get(), a_);
  layer_.EraseStream(allocation.get(), a_);
  layer_.EraseStream(allocation.get(), own_->stream());
  allocation.reset();
  EXPECT_THAT(waited_, ElementsAre(b_.uid));
}

TEST_F(StreamSafeAllocatorTest, WithTheLastMarkTheFlagGoes) {
  AllocationPtr allocation = Marked({a_});
  EXPECT_NE(allocation->block()->flags & kBlockMarked, 0);
  layer_.EraseStream(allocation.get(), a_);
  EXPECT_EQ(allocation->block()->flags & kBlockMarked, 0);
}

TEST_F(StreamSafeAllocatorTest, ARecycledRecordHasNoMarks) {
  Marked({a_}).reset();
  waited_.clear();
  layer_.Allocate(1000).reset();
  EXPECT_THAT(waited_, IsEmpty());
}

TEST_F(StreamSafeAllocatorTest, ADestroyedStreamIsWaitedForThenNotLater) {
  AllocationPtr allocation = Marked({a_});
  AllocationPtr both = Marked({a_, b_});
  layer_.StreamDestroyed(a_);
  EXPECT_THAT(waited_, ElementsAre(a_.uid));
  EXPECT_EQ(place_.device().StreamDestroy(a_), Status::kSuccess);
  allocation.reset();
  EXPECT_THAT(waited_, ElementsAre(a_.uid));
  both.reset();
  EXPECT_THAT(waited_, ElementsAre(a_.uid, b_.uid));
  EXPECT_EQ(device_waits_, 0);
}

TEST_F(StreamSafeAllocatorTest, ADestroyedStreamThatMarkedNothingIsIgnored) {
  const AllocationPtr allocation = Marked({b_});
  layer_.StreamDestroyed(a_);
  EXPECT_THAT(waited_, IsEmpty());
}

TEST_F(StreamSafeAllocatorTest,
       ForAStreamGoneWithoutNoticeTheDeviceIsWaitedFor) {
  AllocationPtr allocation = Marked({a_});
  EXPECT_EQ(place_.device().StreamDestroy(a_), Status::kSuccess);
  allocation.reset();
  EXPECT_EQ(device_waits_, 1);
  EXPECT_EQ(below_->live(), 0U);
}

// paddle.md §5 B3: marking and freeing were not synchronised.
TEST_F(StreamSafeAllocatorTest, ManyThreadsMayMarkAndFree) {
  place_.device().SetCallObserver(nullptr);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([this, t] {
      for (int i = 0; i < 300; ++i) {
        AllocationPtr mine = Marked({a_, b_});
        if (i % 3 == t % 3) layer_.EraseStream(mine.get(), b_);
        if (i % 50 == 0) layer_.StreamDestroyed(b_);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(below_->live(), 0U);
}

TEST(StreamSafeHostTest, WithoutDevicesNothingIsWaitedFor) {
  PoolPlace place;
  StreamSafeAllocator layer(place.pool(), nullptr, nullptr);
  layer.Free(layer.Allocate(1000), place.NewStream());
  EXPECT_EQ(place.device().CallCount(DeviceCall::kStreamSynchronize), 0U);
}

// A strategy that orders other streams itself, on the device alone.
class MarkKeeper final : public Decorator {
 public:
  using Decorator::Decorator;
  bool RecordStream(Allocation* /*allocation*/,
                    Stream stream) noexcept override {
    if (declines) return false;
    marks.push_back(stream);
    return true;
  }
  void EraseStream(Allocation* /*allocation*/,
                   Stream stream) noexcept override {
    erased.push_back(stream);
  }
  const char* name() const override { return "mark_keeper"; }

  bool declines = false;
  std::vector<Stream> marks;
  std::vector<Stream> erased;
};

TEST_F(StreamSafeAllocatorTest, DoesNotWaitForMarksThatAreKeptBelow) {
  const auto keeper = std::make_shared<MarkKeeper>(below_);
  StreamSafeAllocator layer(keeper, place_.platform(), own_);
  AllocationPtr allocation = layer.Allocate(1000);
  EXPECT_TRUE(layer.RecordStream(allocation.get(), a_));
  EXPECT_FALSE(layer.RecordStream(allocation.get(), own_->stream()));
  keeper->declines = true;
  EXPECT_TRUE(layer.RecordStream(allocation.get(), b_));
  layer.EraseStream(allocation.get(), a_);
  EXPECT_THAT(keeper->marks, ElementsAre(a_));
  EXPECT_THAT(keeper->erased, ElementsAre(a_));
  allocation.reset();
  EXPECT_THAT(waited_, ElementsAre(b_.uid));
}

}  // namespace
}  // namespace strata
