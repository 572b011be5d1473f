#include "strata/strategy/blocks/free_epochs.h"

#include <gtest/gtest.h>

#include <limits>
#include <memory>

#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

using Epoch = FreeEpochs::Epoch;

class FreeEpochsTest : public ::testing::Test {
 protected:
  // Completes the work of the stream, and notes the completion.
  void Pass() {
    ASSERT_EQ(timeline().Close(), Status::kSuccess);
    timeline().Poll();
  }
  StreamTimeline& timeline() { return *stream_->timeline(); }

  PoolPlace place_;
  std::shared_ptr<ChainStream> stream_ = place_.NewChainStream();
  FreeEpochs epochs_;
};

TEST_F(FreeEpochsTest, TheCurrentEpochIsNeverOver) {
  EXPECT_FALSE(epochs_.IsOver(epochs_.current()));
  EXPECT_TRUE(epochs_.IsOver(FreeEpochs::kNone));
  epochs_.Close(timeline());
  Pass();
  epochs_.Update(timeline());
  EXPECT_FALSE(epochs_.IsOver(epochs_.current()));
}

TEST_F(FreeEpochsTest, AnEpochIsOverWhenItsTickIsDoneAndNotBefore) {
  const Epoch first = epochs_.current();
  epochs_.Close(timeline());
  epochs_.Update(timeline());
  EXPECT_FALSE(epochs_.IsOver(first));
  Pass();
  const Epoch second = epochs_.current();
  epochs_.Close(timeline());
  epochs_.Update(timeline());
  EXPECT_TRUE(epochs_.IsOver(first));
  EXPECT_FALSE(epochs_.IsOver(second));
}

TEST_F(FreeEpochsTest, TheTickOfAnEpochComesAfterItsEnd) {
  const Epoch first = epochs_.current();
  const StreamTimeline::Tick before = timeline().Note();
  epochs_.Close(timeline());
  EXPECT_GT(epochs_.TickOf(first), before);
}

TEST_F(FreeEpochsTest, EpochsThatDoNotFitWaitForTheNext) {
  for (int i = 0; i < 20; ++i) {
    const Epoch epoch = epochs_.current();
    const StreamTimeline::Tick before = timeline().noted();
    epochs_.Close(timeline());
    // For any omitted epochs, an epoch never gets a tick before its own.
    EXPECT_GT(epochs_.TickOf(epoch), before);
    EXPECT_EQ(epochs_.TickOf(epoch), timeline().noted());
    EXPECT_GE(epochs_.TickOf(static_cast<Epoch>(epoch - 1)),
              epoch > 1 ? timeline().noted() - 1 : 0);
  }
  Pass();
  epochs_.Update(timeline());
  EXPECT_TRUE(epochs_.IsOver(20));
  EXPECT_FALSE(epochs_.IsOver(21));
}

TEST_F(FreeEpochsTest, AllPassAtTheEndOfTheStream) {
  epochs_.Close(timeline());
  const Epoch last = epochs_.current();
  epochs_.PassAll();
  EXPECT_TRUE(epochs_.IsOver(last));
}

TEST_F(FreeEpochsTest, StartsAgainWithoutForgettingWhatIsPending) {
  while (!epochs_.is_spent()) {
    epochs_.Close(timeline());
    if (epochs_.current() == std::numeric_limits<Epoch>::max() - 1) {
      Pass();
      epochs_.Update(timeline());
    }
  }
  EXPECT_EQ(epochs_.restarts(), 0u);
  const Epoch pending = epochs_.Restart();
  EXPECT_EQ(epochs_.restarts(), 1u);
  EXPECT_FALSE(epochs_.IsOver(pending));
  // Covered neither by the ticks of closed epochs, nor by later ticks before
  // Close.
  Pass();
  epochs_.Update(timeline());
  EXPECT_FALSE(epochs_.IsOver(pending));
  epochs_.Close(timeline());
  EXPECT_LT(pending, epochs_.current());
  EXPECT_NE(epochs_.TickOf(pending), 0u);
  Pass();
  epochs_.Update(timeline());
  EXPECT_TRUE(epochs_.IsOver(pending));
}

}  // namespace
}  // namespace strata
