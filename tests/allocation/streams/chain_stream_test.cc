#include "strata/allocation/streams/chain_stream.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "strata/allocation/streams/stream_timeline.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

class ChainStreamTest : public ::testing::Test {
 protected:
  std::uint64_t Waits(DeviceCall call) const {
    return place_.device().CallCount(call);
  }

  PoolPlace place_;
  std::shared_ptr<ChainStream> stream_ = place_.NewChainStream();
};

TEST_F(ChainStreamTest, WaitsForItsStream) {
  EXPECT_EQ(stream_->Synchronize(), Status::kSuccess);
  EXPECT_EQ(Waits(DeviceCall::kStreamSynchronize), 1U);
  EXPECT_EQ(Waits(DeviceCall::kSynchronize), 0U);
}

TEST_F(ChainStreamTest, ARetiredStreamIsNotTouched) {
  ChainStream stream(place_.device(), place_.NewStream());
  stream.Retire();
  EXPECT_TRUE(stream.retired());
  const std::uint64_t calls = place_.DeviceCalls();
  EXPECT_EQ(stream.Synchronize(), Status::kSuccess);
  EXPECT_TRUE(stream.IsDone());
  EXPECT_EQ(place_.DeviceCalls(), calls);
}

TEST_F(ChainStreamTest, TheWorkOfARetiredStreamIsKnownByItsLastEvent) {
  PoolPlaceOptions manual;
  manual.progress = "manual";
  const PoolPlace place(manual);
  DevicePtr memory = 0;
  ASSERT_EQ(place.device().MemAlloc(&memory, 64), Status::kSuccess);
  const auto stream = place.NewChainStream();
  for (const bool waits : {false, true}) {
    const auto one = waits ? place.NewChainStream() : stream;
    EXPECT_EQ(place.device().MemsetAsync(memory, 1, 64, one->stream()),
              Status::kSuccess);
    place.timelines()->StreamDestroyed(one->stream());
    one->Retire();
    EXPECT_EQ(place.device().StreamDestroy(one->stream()), Status::kSuccess);
    EXPECT_FALSE(one->IsDone());
    if (waits) {
      EXPECT_EQ(one->Synchronize(), Status::kSuccess);
    } else {
      place.device().StepAll();
    }
    EXPECT_TRUE(one->IsDone());
  }
}

TEST_F(ChainStreamTest, HostMemoryHasNothingToWaitFor) {
  ChainStream host;
  EXPECT_EQ(host.Synchronize(), Status::kSuccess);
  EXPECT_EQ(host.device(), nullptr);
  EXPECT_EQ(host.stream().uid, 0U);
}

TEST_F(ChainStreamTest, IfTheStreamIsGoneItWaitsForTheDevice) {
  EXPECT_EQ(place_.device().StreamDestroy(stream_->stream()), Status::kSuccess);
  EXPECT_EQ(stream_->Synchronize(), Status::kSuccess);
  EXPECT_EQ(Waits(DeviceCall::kSynchronize), 1U);
}

// Another thread could destroy the stream between the check for it and its use.
TEST_F(ChainStreamTest, ItsEndWaitsForCallsThatUseTheStream) {
  for (const DeviceCall used :
       {DeviceCall::kStreamSynchronize, DeviceCall::kStreamQuery}) {
    const auto stream = place_.NewChainStream();
    std::atomic<bool> has_ended{false};
    std::thread destroyer;
    // Observes the call while it is still inside.
    place_.device().SetCallObserver([&](const CallRecord& call) {
      if (call.call != used || destroyer.joinable()) return;
      destroyer = std::thread([&] {
        place_.timelines()->StreamDestroyed(stream->stream());
        has_ended = true;
      });
      while (stream->timeline()->Use()) std::this_thread::yield();
      for (int i = 0; i < 1000; ++i) std::this_thread::yield();
      EXPECT_FALSE(has_ended) << DeviceCallName(used);
    });
    if (used == DeviceCall::kStreamQuery) {
      EXPECT_TRUE(stream->IsDone());
    } else {
      EXPECT_EQ(stream->Synchronize(), Status::kSuccess);
    }
    ASSERT_TRUE(destroyer.joinable());
    destroyer.join();
    place_.device().SetCallObserver(nullptr);
    // Afterwards no call uses it.
    EXPECT_EQ(place_.device().StreamDestroy(stream->stream()),
              Status::kSuccess);
    EXPECT_TRUE(stream->IsDone());
    EXPECT_EQ(stream->Synchronize(), Status::kSuccess);
    EXPECT_EQ(Waits(DeviceCall::kSynchronize), 0U);
  }
}

TEST_F(ChainStreamTest, SaysSoIfNothingCanBeWaitedFor) {
  place_.device().AddFault(FailAll(DeviceCall::kStreamSynchronize));
  place_.device().AddFault(FailAll(DeviceCall::kSynchronize));
  EXPECT_NE(stream_->Synchronize(), Status::kSuccess);
}

}  // namespace
}  // namespace strata
