#include "strata/strategy/shared/shared_order.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "strata/allocation/streams/stream_timeline.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

// Work that appends a letter when it runs.
struct Letter {
  std::string* text;
  char letter;
  static void Write(void* argument) {
    auto* self = static_cast<Letter*>(argument);
    *self->text += self->letter;
  }
};

class SharedOrderTest : public ::testing::Test {
 protected:
  static PoolPlaceOptions Lazy() {
    PoolPlaceOptions options;
    options.progress = "lazy";
    return options;
  }
  std::shared_ptr<SharedOrder::Share> Join(
      const std::shared_ptr<ChainStream>& stream) {
    return order_.Join(stream);
  }
  void Submit(const ChainStream& stream, Letter& letter) const {
    ASSERT_EQ(place_.device().LaunchHostFunc(stream.stream(), &Letter::Write,
                                             &letter),
              Status::kSuccess);
  }
  std::uint64_t Count(DeviceCall call) const {
    return place_.device().CallCount(call);
  }

  PoolPlace place_{Lazy()};
  SharedOrder order_;
  std::shared_ptr<ChainStream> a_ = place_.NewChainStream();
  std::shared_ptr<ChainStream> b_ = place_.NewChainStream();
  std::shared_ptr<SharedOrder::Share> share_a_ = Join(a_);
  std::shared_ptr<SharedOrder::Share> share_b_ = Join(b_);
  std::string text_;
  Letter letter_a_{&text_, 'A'};
  Letter letter_b_{&text_, 'B'};
};

TEST_F(SharedOrderTest, AStreamNeverWaitsForItself) {
  const std::uint64_t calls = place_.DeviceCalls();
  for (int i = 0; i < 10; ++i) {
    order_.NoteFree(*share_a_, 0);
    EXPECT_EQ(order_.OrderAfterOthers(*share_a_, 0), Status::kSuccess);
  }
  EXPECT_EQ(place_.DeviceCalls(), calls);
}

TEST_F(SharedOrderTest, OrdersAStreamAfterTheWorkBeforeAnothersFree) {
  Submit(*a_, letter_a_);
  order_.NoteFree(*share_a_, 0);
  EXPECT_EQ(order_.OrderAfterOthers(*share_b_, 0), Status::kSuccess);
  Submit(*b_, letter_b_);
  // Only the order of B behind it can have made A run.
  EXPECT_EQ(b_->Synchronize(), Status::kSuccess);
  EXPECT_EQ(text_, "AB");
  EXPECT_EQ(Count(DeviceCall::kStreamSynchronize), 1U);
  EXPECT_EQ(Count(DeviceCall::kEventSynchronize), 0U);
}

TEST_F(SharedOrderTest, WithoutAFreeStreamsStayIndependent) {
  Submit(*a_, letter_a_);
  EXPECT_EQ(order_.OrderAfterOthers(*share_b_, 0), Status::kSuccess);
  Submit(*b_, letter_b_);
  EXPECT_EQ(b_->Synchronize(), Status::kSuccess);
  EXPECT_EQ(text_, "B");
}

TEST_F(SharedOrderTest, WaitsOncePerStreamThatFreedSomething) {
  const auto c = place_.NewChainStream();
  const auto share_c = Join(c);
  order_.NoteFree(*share_a_, 0);
  order_.NoteFree(*share_a_, 0);
  EXPECT_EQ(order_.OrderAfterOthers(*share_b_, 0), Status::kSuccess);
  EXPECT_EQ(order_.OrderAfterOthers(*share_b_, 0), Status::kSuccess);
  EXPECT_EQ(Count(DeviceCall::kEventRecord), 1U);
  order_.NoteFree(*share_a_, 0);
  order_.NoteFree(*share_c, 0);
  EXPECT_EQ(order_.OrderAfterOthers(*share_b_, 0), Status::kSuccess);
  EXPECT_EQ(Count(DeviceCall::kEventRecord), 3U);
}

// Several frees between two checks count as one: the check waits for the last.
TEST_F(SharedOrderTest, WaitsForTheWorkBeforeTheLastOfSeveralFrees) {
  order_.NoteFree(*share_a_, 0);
  Submit(*a_, letter_a_);
  order_.NoteFree(*share_a_, 0);
  EXPECT_EQ(order_.OrderAfterOthers(*share_b_, 0), Status::kSuccess);
  Submit(*b_, letter_b_);
  EXPECT_EQ(b_->Synchronize(), Status::kSuccess);
  EXPECT_EQ(text_, "AB");
}

TEST_F(SharedOrderTest, AStreamDoesNotWaitForAnotherLane) {
  order_.NoteFree(*share_a_, 1);
  EXPECT_TRUE(order_.IsOrdered(*share_b_, 0));
  EXPECT_EQ(order_.OrderAfterOthers(*share_b_, 0), Status::kSuccess);
  EXPECT_EQ(Count(DeviceCall::kStreamWaitEvent), 0U);
  EXPECT_FALSE(order_.IsOrdered(*share_b_, 1));
  EXPECT_EQ(order_.OrderAfterOthers(*share_b_, 1), Status::kSuccess);
  EXPECT_EQ(Count(DeviceCall::kStreamWaitEvent), 1U);
  // Blocks of any lane.
  order_.NoteFrees(*share_a_);
  EXPECT_FALSE(order_.IsOrdered(*share_b_, 0));
  EXPECT_FALSE(order_.IsOrdered(*share_b_, 1));
}

TEST_F(SharedOrderTest, EveryStreamWaitsForAFreeThatAnotherHasLookedFor) {
  const auto c = place_.NewChainStream();
  const auto share_c = Join(c);
  order_.NoteFree(*share_a_, 0);
  EXPECT_EQ(order_.OrderAfterOthers(*share_b_, 0), Status::kSuccess);
  Submit(*a_, letter_a_);
  order_.NoteFree(*share_a_, 0);
  EXPECT_FALSE(order_.IsOrdered(*share_b_, 0));
  EXPECT_EQ(order_.OrderAfterOthers(*share_c, 0), Status::kSuccess);
  order_.NoteFree(*share_a_, 0);
  EXPECT_FALSE(order_.IsOrdered(*share_c, 0));
  EXPECT_EQ(order_.OrderAfterOthers(*share_b_, 0), Status::kSuccess);
  Submit(*b_, letter_b_);
  EXPECT_EQ(b_->Synchronize(), Status::kSuccess);
  EXPECT_EQ(text_, "AB");
}

TEST_F(SharedOrderTest, WaitsOnTheHostIfTheDeviceRefusesAnEvent) {
  for (const DeviceCall call :
       {DeviceCall::kEventCreate, DeviceCall::kEventRecord,
        DeviceCall::kStreamWaitEvent}) {
    text_.clear();
    Submit(*a_, letter_a_);
    order_.NoteFree(*share_a_, 0);
    place_.device().AddFault(FailNth(call, 1));
    EXPECT_EQ(order_.OrderAfterOthers(*share_b_, 0), Status::kSuccess);
    EXPECT_EQ(text_, "A") << DeviceCallName(call);
    place_.device().ClearFaults();
  }
}

TEST_F(SharedOrderTest, AFailedOrderIsTriedAgain) {
  order_.NoteFree(*share_a_, 0);
  place_.device().AddFault(FailAll(DeviceCall::kEventRecord));
  place_.device().AddFault(FailAll(DeviceCall::kStreamSynchronize));
  place_.device().AddFault(FailAll(DeviceCall::kSynchronize));
  EXPECT_NE(order_.OrderAfterOthers(*share_b_, 0), Status::kSuccess);
  place_.device().ClearFaults();
  EXPECT_EQ(order_.OrderAfterOthers(*share_b_, 0), Status::kSuccess);
  EXPECT_EQ(Count(DeviceCall::kStreamWaitEvent), 1U);
}

// Also if it was freed after the end of the stream.
TEST_F(SharedOrderTest, TheLastWorkOfARetiredStreamComesFirst) {
  Submit(*a_, letter_a_);
  a_->timeline()->End();
  a_->Retire();
  EXPECT_EQ(place_.device().StreamDestroy(a_->stream()), Status::kSuccess);
  order_.NoteFree(*share_a_, 0);
  EXPECT_EQ(order_.OrderAfterOthers(*share_b_, 0), Status::kSuccess);
  Submit(*b_, letter_b_);
  EXPECT_EQ(b_->Synchronize(), Status::kSuccess);
  EXPECT_EQ(text_, "AB");
}

TEST_F(SharedOrderTest, ARetiredStreamAtWorkIsNotForgotten) {
  Submit(*a_, letter_a_);
  order_.NoteFree(*share_a_, 0);
  a_->timeline()->End();
  a_->Retire();
  EXPECT_EQ(place_.device().StreamDestroy(a_->stream()), Status::kSuccess);
  share_a_.reset();
  order_.ForgetOver();
  const auto c = place_.NewChainStream();
  const auto share_c = Join(c);
  EXPECT_EQ(order_.OrderAfterOthers(*share_c, 0), Status::kSuccess);
  Submit(*c, letter_b_);
  EXPECT_EQ(c->Synchronize(), Status::kSuccess);
  EXPECT_EQ(text_, "AB");
}

TEST_F(SharedOrderTest, ARetiredStreamThatIsDoneIsForgotten) {
  order_.NoteFree(*share_a_, 0);
  a_->timeline()->End();
  a_->Retire();
  EXPECT_EQ(a_->Synchronize(), Status::kSuccess);
  order_.ForgetOver();
  const auto c = place_.NewChainStream();
  const auto share_c = Join(c);
  const std::uint64_t calls = place_.DeviceCalls();
  EXPECT_EQ(order_.OrderAfterOthers(*share_c, 0), Status::kSuccess);
  EXPECT_EQ(place_.DeviceCalls(), calls);
}

TEST_F(SharedOrderTest, AStreamWithoutTimelineIsWaitedForOnTheHost) {
  const auto plain =
      std::make_shared<ChainStream>(place_.device(), place_.NewStream());
  const auto share = Join(plain);
  Submit(*plain, letter_a_);
  order_.NoteFree(*share, 0);
  EXPECT_EQ(order_.OrderAfterOthers(*share_b_, 0), Status::kSuccess);
  EXPECT_EQ(text_, "A");
}

TEST_F(SharedOrderTest, CountsTheStreamsInUse) {
  EXPECT_FALSE(order_.several());
  order_.Activate(*share_a_);
  order_.Activate(*share_a_);
  EXPECT_FALSE(order_.several());
  order_.Activate(*share_b_);
  EXPECT_TRUE(order_.several());
  order_.Leave(*share_a_);
  order_.Leave(*share_a_);
  EXPECT_FALSE(order_.several());
}

TEST_F(SharedOrderTest, KnowsTheDeviceOfItsStreams) {
  EXPECT_EQ(SharedOrder().memory_device(), nullptr);
  EXPECT_EQ(order_.memory_device(), &place_.device());
  // It is no stream of that device.
  EXPECT_EQ(order_.device(), nullptr);
}

TEST_F(SharedOrderTest, WaitingForItWaitsForAllStreams) {
  Submit(*a_, letter_a_);
  Submit(*b_, letter_b_);
  EXPECT_FALSE(order_.IsDone());
  EXPECT_EQ(order_.Synchronize(), Status::kSuccess);
  EXPECT_EQ(text_.size(), 2U);
  EXPECT_TRUE(order_.IsDone());
}

// A stream without a device. The host waits for it. Records the number of
// waits, and the work submitted before each.
class WaitedStream final : public ChainStream {
 public:
  Status Synchronize() noexcept override {
    ++waits;
    waited_for = submitted.load();
    return Status::kSuccess;
  }
  std::atomic<int> waits{0};
  std::atomic<int> submitted{0};
  std::atomic<int> waited_for{0};
};

class SharedOrderThreadsTest : public ::testing::Test {
 protected:
  SharedOrder order_;
  std::shared_ptr<WaitedStream> other_ = std::make_shared<WaitedStream>();
  std::shared_ptr<SharedOrder::Share> own_share_ =
      order_.Join(std::make_shared<WaitedStream>());
  std::shared_ptr<SharedOrder::Share> other_share_ = order_.Join(other_);
};

// An earlier fault: a free of the own stream, by a second thread that uses it,
// counted as a free of another stream that had been waited for. So the next
// free of another stream was missed.
TEST_F(SharedOrderThreadsTest, OwnFreesHideNoFreeOfAnother) {
  std::atomic<bool> is_over{false};
  const auto third_share = order_.Join(std::make_shared<WaitedStream>());
  std::thread freer([&] {
    while (!is_over) {
      order_.NoteFree(*own_share_, 0);
      // Waits for it, so that the next one counts too.
      EXPECT_EQ(order_.OrderAfterOthers(*third_share, 0), Status::kSuccess);
    }
  });
  int missed = 0;
  for (int i = 0; i < 100'000; ++i) {
    order_.NoteFree(*other_share_, 0);
    const int waits = other_->waits;
    EXPECT_EQ(order_.OrderAfterOthers(*own_share_, 0), Status::kSuccess);
    missed += other_->waits == waits ? 1 : 0;
    // No new free; an earlier bug counted too many frees as waited for here.
    EXPECT_EQ(order_.OrderAfterOthers(*own_share_, 0), Status::kSuccess);
  }
  is_over = true;
  freer.join();
  EXPECT_EQ(missed, 0);
}

// An earlier fault: a free that was just being noted counted as waited for,
// although its stream was skipped.
TEST_F(SharedOrderThreadsTest, AFreeInTheMakingIsNotWaitedForYet) {
  constexpr int kFrees = 10'000;
  std::atomic<int> noted{0};
  std::atomic<int> rounds{0};
  std::thread freer([&] {
    for (int i = 0; i < kFrees; ++i) {
      ++other_->submitted;
      order_.NoteFree(*other_share_, 0);
      ++noted;
      for (const int seen = rounds; rounds - seen < 2;) {
        std::this_thread::yield();
      }
    }
  });
  int missed = 0;
  while (noted < kFrees) {
    const int due = noted;
    EXPECT_EQ(order_.OrderAfterOthers(*own_share_, 0), Status::kSuccess);
    missed += other_->waited_for < due ? 1 : 0;
    ++rounds;
    std::this_thread::yield();
  }
  rounds += 2;
  freer.join();
  EXPECT_EQ(missed, 0);
}

// Frees that are forgotten with a destroyed share still count as waited for.
TEST_F(SharedOrderThreadsTest, AShareThatIsGoneLeavesNothingToWaitFor) {
  order_.NoteFree(*other_share_, 0);
  EXPECT_EQ(order_.OrderAfterOthers(*own_share_, 0), Status::kSuccess);
  other_->Retire();
  other_share_.reset();
  const std::weak_ptr<WaitedStream> gone = std::exchange(other_, nullptr);
  order_.ForgetOver();
  const auto third = std::make_shared<WaitedStream>();
  const auto third_share = order_.Join(third);
  EXPECT_TRUE(gone.expired());
  order_.NoteFree(*third_share, 0);
  EXPECT_EQ(order_.OrderAfterOthers(*own_share_, 0), Status::kSuccess);
  EXPECT_EQ(order_.OrderAfterOthers(*own_share_, 0), Status::kSuccess);
  EXPECT_EQ(third->waits, 1);
}

}  // namespace
}  // namespace strata
