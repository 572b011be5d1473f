#include "strata/allocation/reclaim/retry_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>

#include "strata/platform/platform.h"
#include "strata/tests/testing/devices/refusing_device.h"

namespace strata {
namespace {

// Reports the state that a test sets for every stream, and refuses all other
// calls.
class StatedDevice final : public RefusingDevice {
 public:
  Status StreamIsCapturing(Stream /*stream*/, CaptureStatus* capture) override {
    ++asked;
    *capture = state;
    return status;
  }

  Status status = Status::kSuccess;
  CaptureStatus state = CaptureStatus::kNone;
  int asked = 0;
};

class StatedPlatform final : public Platform {
 public:
  const char* name() const override { return "capturing"; }
  int device_count() const override { return 1; }
  StatedDevice& device(int /*ordinal*/) override { return device_; }

 private:
  StatedDevice device_;
};

class RetryQueueTest : public ::testing::Test {
 protected:
  RetryQueueTest() {
    // Makes the calling thread not the only one.
    std::thread([this] { queue_.CountThread(); }).join();
  }

  RetryOptions Options() const {
    RetryOptions options;
    options.time = std::chrono::seconds(10);
    options.platform = platform_;
    return options;
  }

  static Failure Exhausted(std::size_t bytes) {
    Failure failure;
    failure.reason = Failure::Reason::kDeviceMemory;
    failure.place = DevicePlace(0);
    failure.requested_bytes = bytes;
    return failure;
  }

  // In a thread that does not search.
  void NotifyFree(std::size_t bytes) {
    std::thread([this, bytes] { queue_.NotifyFree(bytes); }).join();
  }

  const std::shared_ptr<StatedPlatform> platform_ =
      std::make_shared<StatedPlatform>();
  RetryQueue queue_{Options()};
  const Stream stream_{nullptr, 0, 42};
};

// paddle.md §5-B7: a request waited even during a capture.
TEST_F(RetryQueueTest, NobodyWaitsOnAStreamThatIsCapturing) {
  StatedDevice& device = platform_->device(0);
  EXPECT_TRUE(queue_.MayWait(stream_, Exhausted(1)));
  for (const CaptureStatus state :
       {CaptureStatus::kActive, CaptureStatus::kInvalidated}) {
    device.state = state;
    EXPECT_FALSE(queue_.MayWait(stream_, Exhausted(1)));
  }
  EXPECT_EQ(device.asked, 3);
  // During another stream's capture, the legacy stream cannot be queried.
  device.state = CaptureStatus::kNone;
  device.status = Status::kStreamCaptureImplicit;
  EXPECT_FALSE(queue_.MayWait(stream_, Exhausted(1)));
}

TEST_F(RetryQueueTest, ADeviceThatCannotSayIsNotCapturing) {
  StatedDevice& device = platform_->device(0);
  device.state = CaptureStatus::kActive;  // must be ignored
  device.status = Status::kNotSupported;
  EXPECT_TRUE(queue_.MayWait(stream_, Exhausted(1)));
  // Streams of no device are not queried.
  device.asked = 0;
  EXPECT_TRUE(queue_.MayWait(Stream(), Exhausted(1)));
  EXPECT_TRUE(queue_.MayWait(Stream{nullptr, 1, 42}, Exhausted(1)));
  EXPECT_EQ(device.asked, 0);
}

TEST_F(RetryQueueTest, ManagedMemoryMayExceedTheDevice) {
  Failure failure = Exhausted(1000);
  failure.device_total_bytes = 999;
  EXPECT_FALSE(queue_.MayWait(stream_, failure));
  failure.place = ManagedPlace(0);
  EXPECT_TRUE(queue_.MayWait(stream_, failure));
  failure.limit_bytes = 999;
  EXPECT_FALSE(queue_.MayWait(stream_, failure));
}

TEST_F(RetryQueueTest, CountsWaitersFromTheMomentTheyJoin) {
  EXPECT_FALSE(queue_.has_waiters());
  {
    const RetryQueue::Stay stay(queue_, Exhausted(1));
    EXPECT_TRUE(queue_.has_waiters());
  }
  EXPECT_FALSE(queue_.has_waiters());
}

TEST_F(RetryQueueTest, CountsWaitersForOthersToo) {
  std::atomic<std::uint32_t> count{0};
  queue_.CountWaitersIn(count);
  {
    const RetryQueue::Stay first(queue_, Exhausted(1));
    const RetryQueue::Stay second(queue_, Exhausted(1));
    EXPECT_EQ(count.load(), 2U);
  }
  EXPECT_EQ(count.load(), 0U);
}

// tf_bfc.md R46: such a free was missed.
TEST_F(RetryQueueTest, AFreeBetweenTheSearchAndTheWaitIsNotLost) {
  RetryQueue::Stay stay(queue_, Exhausted(1));
  stay.BeginSearch();
  NotifyFree(1);
  EXPECT_TRUE(stay.Wait(Exhausted(1)));
  EXPECT_EQ(stay.waited().count(), 0);
}

TEST_F(RetryQueueTest, WhoWasWokenWakesTheNextOne) {
  RetryQueue::Stay second(queue_, Exhausted(1));
  RetryQueue::Stay third(queue_, Exhausted(1));
  NotifyFree(1);  // wakes the second
  second.BeginSearch();
  third.BeginSearch();
  NotifyFree(1);  // wakes the second again, which searches
  EXPECT_TRUE(second.Wait(Exhausted(1)));
  EXPECT_TRUE(third.Wait(Exhausted(1)));
}

TEST_F(RetryQueueTest, WhoLeavesPassesOnAWakeUpThatCameTooLate) {
  auto first = std::make_unique<RetryQueue::Stay>(queue_, Exhausted(1));
  RetryQueue::Stay second(queue_, Exhausted(1));
  first->BeginSearch();
  second.BeginSearch();
  NotifyFree(1);  // for the first, which has already succeeded
  first.reset();
  EXPECT_TRUE(second.Wait(Exhausted(1)));
}

// Two waiters that claim a limit in turn without success would never sleep.
TEST_F(RetryQueueTest, WaitersDoNotWakeEachOtherByWhatTheyGiveBack) {
  RetryQueue::Stay first(queue_, Exhausted(1));
  RetryQueue::Stay second(queue_, Exhausted(1));
  first.BeginSearch();
  EXPECT_FALSE(first.Wait(Exhausted(1)));  // only this thread is left
  second.BeginSearch();
  queue_.NotifyFree(0);  // wakes neither itself nor the sleeping one
  EXPECT_FALSE(second.Wait(Exhausted(1)));
  first.BeginSearch();
  second.BeginSearch();
  queue_.NotifyFree(0);  // of the second, while the first searches too
  EXPECT_TRUE(first.Wait(Exhausted(1)));
}

TEST_F(RetryQueueTest, AReturnOfALimitConcernsThoseItRefused) {
  Failure limited = Exhausted(1);
  limited.reason = Failure::Reason::kLimit;
  RetryQueue::Stay other(queue_, Exhausted(1));
  RetryQueue::Stay refused(queue_, limited);
  other.BeginSearch();
  refused.BeginSearch();
  std::thread([this] {
    queue_.NotifyReturn(1, Failure::Reason::kLimit);
  }).join();
  EXPECT_TRUE(refused.Wait(limited));
  // Only this thread is left, so the other one is not woken; its wait fails.
  EXPECT_FALSE(other.Wait(Exhausted(1)));
}

}  // namespace
}  // namespace strata
