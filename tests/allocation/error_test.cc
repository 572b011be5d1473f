#include "strata/allocation/error.h"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>

#include "strata/base/size.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

Failure LimitFailure() {
  Failure failure;
  failure.reason = Failure::Reason::kLimit;
  failure.layer = "chunk_pool";
  failure.place = DevicePlace(0);
  failure.requested_bytes = failure.rounded_bytes = Mebibytes(3);
  failure.reserved_bytes = Mebibytes(9);
  failure.limit_bytes = Mebibytes(10);
  failure.device_free_bytes = Mebibytes(50);
  failure.device_total_bytes = Mebibytes(80);
  return failure;
}

TEST(AdviceTest, SaysHowMuchAHigherLimitNeeds) {
  EXPECT_EQ(Advice(LimitFailure()),
            "The device has room: with what is held now, a limit higher by 2 "
            "MiB would have met this request.");
}

TEST(AdviceTest, NamesTheFlagOfTheLimit) {
  Failure failure = LimitFailure();
  failure.limit_flag = "--gpu_memory_limit_mb";
  EXPECT_EQ(Advice(failure),
            "The device has room: with what is held now, --gpu_memory_limit_mb "
            "higher by 2 MiB would have met this request.");
}

TEST(AdviceTest, RoundsWhatIsMissingUp) {
  Failure failure = LimitFailure();
  ++failure.reserved_bytes;
  EXPECT_EQ(Advice(failure),
            "The device has room: with what is held now, a limit higher by 3 "
            "MiB would have met this request.");
}

TEST(AdviceTest, IsEmptyWhenTheDeviceHasNoRoom) {
  Failure failure = LimitFailure();
  failure.device_free_bytes = Mebibytes(3) - 1;
  EXPECT_EQ(Advice(failure), "");
}

// The limit is not on held bytes, or two users share it.
TEST(AdviceTest, IsEmptyWhenTheLimitLeavesRoom) {
  Failure failure = LimitFailure();
  failure.reserved_bytes = Mebibytes(7);
  EXPECT_EQ(Advice(failure), "");
}

TEST(AdviceTest, IsEmptyWhenTheDeviceWasNotAsked) {
  Failure failure = LimitFailure();
  failure.device_total_bytes = 0;
  EXPECT_EQ(Advice(failure), "");
}

TEST(AdviceTest, IsEmptyForOtherReasons) {
  Failure failure = LimitFailure();
  failure.reason = Failure::Reason::kDeviceMemory;
  EXPECT_EQ(Advice(failure), "");
}

TEST(OutOfMemoryTest, EndsWithTheAdvice) {
  const OutOfMemory error(LimitFailure(), {}, "Do this.");
  EXPECT_EQ(std::string(error.what()),
            LimitFailure().ToString() + ". Do this.");
  EXPECT_EQ(error.advice(), "Do this.");
}

TEST(ThrowFailureTest, ChoosesTheExceptionByReason) {
  PoolPlace place;
  const Allocator& layer = *place.pool();
  Failure failure = LimitFailure();
  failure.reason = Failure::Reason::kBadRequest;
  EXPECT_THROW(ThrowFailure(failure, layer), std::invalid_argument);
  failure.reason = Failure::Reason::kDevice;
  failure.status = Status::kIllegalAddress;
  try {
    ThrowFailure(failure, layer);
  } catch (const DeviceError& error) {
    EXPECT_EQ(error.status(), Status::kIllegalAddress);
  }
  for (const auto reason :
       {Failure::Reason::kDeviceMemory, Failure::Reason::kHostMemory,
        Failure::Reason::kLimit, Failure::Reason::kBudget}) {
    failure.reason = reason;
    EXPECT_THROW(ThrowFailure(failure, layer), OutOfMemory);
  }
  for (const auto reason :
       {Failure::Reason::kTooLarge, Failure::Reason::kNoGrowth}) {
    failure.reason = reason;
    try {
      ThrowFailure(failure, layer);
    } catch (const BadAlloc& error) {
      EXPECT_EQ(dynamic_cast<const OutOfMemory*>(&error), nullptr);
    }
  }
}

}  // namespace
}  // namespace strata
