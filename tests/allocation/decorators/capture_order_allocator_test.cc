// Edge cases of reuse inside captures: streams that end, and captures that end
// during a call. graph_pool_test.cc covers the other behaviour of the layer.

#include "strata/allocation/decorators/capture_order_allocator.h"

#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <latch>
#include <memory>
#include <thread>
#include <utility>

#include "strata/allocation/block_flags.h"
#include "strata/tests/testing/heap_call_counter.h"
#include "strata/tests/testing/layers/pool_place.h"
#include "strata/tests/testing/layers/shelf_allocator.h"

namespace strata {
namespace {

constexpr std::size_t kBytes = std::size_t{1} << 20;

// Stream A captures, and stream B takes part.
class CaptureOrderAllocatorTest : public ::testing::Test {
 protected:
  CaptureOrderAllocatorTest() {
    EXPECT_EQ(device().EventCreate(&event_, kEventDisableTiming),
              Status::kSuccess);
    place_.timelines()->gate().Announce();
    EXPECT_EQ(device().StreamBeginCapture(a(), CaptureMode::kRelaxed),
              Status::kSuccess);
    Join(a(), b_);
  }
  ~CaptureOrderAllocatorTest() override {
    Join(b_, a());
    Graph graph;
    EXPECT_EQ(device().StreamEndCapture(a(), &graph), Status::kSuccess);
    EXPECT_EQ(device().GraphDestroy(graph), Status::kSuccess);
    place_.timelines()->gate().Withdraw();
    EXPECT_EQ(device().EventDestroy(event_), Status::kSuccess);
  }

  SimDevice& device() { return place_.device(); }
  Stream a() const { return own_->stream(); }
  void Join(const Stream& earlier, const Stream& later) {
    EXPECT_EQ(device().EventRecord(event_, earlier, 0), Status::kSuccess);
    EXPECT_EQ(device().StreamWaitEvent(later, event_, 0), Status::kSuccess);
  }
  // An allocation that a node of B uses.
  AllocationPtr UsedByB() {
    AllocationPtr used = layer_->Allocate(kBytes);
    EXPECT_EQ(device().MemsetAsync(reinterpret_cast<DevicePtr>(used->data()), 0,
                                   kBytes, b_),
              Status::kSuccess);
    EXPECT_TRUE(layer_->RecordStream(used.get(), b_));
    return used;
  }
  // While `act` runs, the capture ends at the first call of kind `call`.
  void EndsAt(DeviceCall call, const std::function<void()>& act) {
    bool has_ended = false;
    device().SetCallObserver([&](const CallRecord& seen) {
      if (seen.call == call && !std::exchange(has_ended, true)) {
        layer_->CaptureEnded();
      }
    });
    act();
    device().SetCallObserver(nullptr);
    EXPECT_TRUE(has_ended);
  }

  PoolPlace place_;
  std::shared_ptr<ChainStream> own_ = place_.NewChainStream();
  std::shared_ptr<ShelfAllocator> shelf_ =
      std::make_shared<ShelfAllocator>(place_.pool());
  Stream b_ = place_.NewStream();
  Event event_;
  std::shared_ptr<CaptureOrderAllocator> layer_ =
      std::make_shared<CaptureOrderAllocator>(shelf_, own_);
};

// cuda_semantics.md K2.
TEST_F(CaptureOrderAllocatorTest, WaitsForTheForkToJoin) {
  UsedByB().reset();
  EXPECT_EQ(shelf_->live(), 1U);
  layer_->Allocate(kBytes).reset();
  EXPECT_EQ(shelf_->live(), 1U);
  Join(b_, a());
  layer_->Allocate(2 * kBytes).reset();
  EXPECT_EQ(shelf_->live(), 0U);
}

// Without a mark, no later call could prove that reuse is safe.
TEST_F(CaptureOrderAllocatorTest, AMarkWithoutHostMemoryKeepsFromReuse) {
  if (!HeapFailure::is_possible()) GTEST_SKIP() << "a sanitizer has the heap";
  AllocationPtr used = layer_->Allocate(kBytes);
  Allocation* const kept = used.get();
  {
    const HeapFailure failure;
    EXPECT_TRUE(layer_->RecordStream(kept, b_));
  }
  used.reset();
  EXPECT_FALSE(HasFlag(*kept->block(), kBlockLive)) << "another free is one";
  Join(b_, a());
  layer_->Allocate(2 * kBytes).reset();
  layer_->CaptureEnded();
  EXPECT_EQ(shelf_->live(), 1U);
  SetLive(*kept->block(), true);
  shelf_->DoFree(kept);
}

// An earlier fault: blocks that the request had examined were put back as if
// the capture were active.
TEST_F(CaptureOrderAllocatorTest, ACaptureThatEndsDuringARequestGivesAllBack) {
  UsedByB().reset();
  EndsAt(DeviceCall::kStreamCaptureInfo,
         [&] { layer_->Allocate(2 * kBytes).reset(); });
  EXPECT_EQ(shelf_->live(), 0U);
}

// An earlier fault: the block was added to the list after the list had been
// emptied.
TEST_F(CaptureOrderAllocatorTest, ACaptureThatEndsDuringAFreeGivesItBack) {
  AllocationPtr used = UsedByB();
  EndsAt(DeviceCall::kStreamCaptureInfo, [&] { used.reset(); });
  EXPECT_EQ(shelf_->live(), 0U);
}

// Another stream may have its handle by then.
TEST_F(CaptureOrderAllocatorTest, AStreamThatIsGoneIsNotAsked) {
  const Stream gone = place_.NewStream();
  AllocationPtr used = layer_->Allocate(kBytes);
  EXPECT_TRUE(layer_->RecordStream(used.get(), gone));
  layer_->StreamDestroyed(gone);
  int calls = 0;
  device().SetCallObserver([&](const CallRecord& seen) {
    if (seen.stream_uid == gone.uid) ++calls;
  });
  used.reset();
  device().SetCallObserver(nullptr);
  EXPECT_EQ(calls, 0);
  EXPECT_EQ(shelf_->live(), 0U);
}

// By a free that has already removed the mark from the list.
TEST_F(CaptureOrderAllocatorTest, TheEndOfAStreamWaitsForWhoAsksIt) {
  AllocationPtr used = UsedByB();
  std::latch is_asked(1);
  std::atomic<bool> has_ended{false};
  std::atomic<bool> ended_meanwhile{false};
  std::thread ending([&] {
    is_asked.wait();
    layer_->StreamDestroyed(b_);
    has_ended = true;
  });
  bool was_asked = false;
  device().SetCallObserver([&](const CallRecord& seen) {
    if (seen.call != DeviceCall::kStreamCaptureInfo ||
        std::exchange(was_asked, true)) {
      return;
    }
    is_asked.count_down();
    for (int i = 0; i < 10000 && !has_ended; ++i) std::this_thread::yield();
    ended_meanwhile = has_ended.load();
  });
  used.reset();
  device().SetCallObserver(nullptr);
  ending.join();
  EXPECT_TRUE(was_asked);
  EXPECT_FALSE(ended_meanwhile);
}

TEST_F(CaptureOrderAllocatorTest, WhatAStreamCapturedBeforeItWentStillCounts) {
  AllocationPtr used = UsedByB();
  layer_->StreamDestroyed(b_);
  used.reset();
  layer_->Allocate(2 * kBytes).reset();
  EXPECT_EQ(shelf_->live(), 1U);
  Join(b_, a());
  layer_->Allocate(4 * kBytes).reset();
  EXPECT_EQ(shelf_->live(), 0U);
}

TEST_F(CaptureOrderAllocatorTest, OfAStreamThatCannotTellAllIsWaitedFor) {
  AllocationPtr used = UsedByB();
  device().AddFault(FailAll(DeviceCall::kStreamCaptureInfo));
  layer_->StreamDestroyed(b_);
  device().ClearFaults();
  used.reset();
  Join(b_, a());
  layer_->Allocate(2 * kBytes).reset();
  EXPECT_EQ(shelf_->live(), 1U);
  layer_->CaptureEnded();
  EXPECT_EQ(shelf_->live(), 0U);
}

// Nodes of an ended capture do not matter for the next one.
TEST_F(CaptureOrderAllocatorTest, WhatIsFreedAfterTheCaptureIsFreeAtOnce) {
  AllocationPtr used = UsedByB();
  layer_->StreamDestroyed(b_);
  layer_->CaptureEnded();
  used.reset();
  EXPECT_EQ(shelf_->live(), 0U);
}

}  // namespace
}  // namespace strata
