#include "strata/allocation/failure.h"

#include <gtest/gtest.h>

#include "strata/allocation/size.h"

namespace strata {
namespace {

Failure Make(Failure::Reason reason, const char* layer) {
  Failure failure;
  failure.reason = reason;
  failure.layer = layer;
  failure.place = DevicePlace(0);
  failure.requested_bytes = Mebibytes(3);
  return failure;
}

TEST(FailureTest, SaysWhatABudgetAllows) {
  Failure failure = Make(Failure::Reason::kBudget, "limit");
  failure.in_use_bytes = Mebibytes(9);
  failure.limit_bytes = Mebibytes(10);
  EXPECT_EQ(failure.ToString(),
            "limit: cannot allocate 3.0 MiB on device:0: 9.0 MiB in use of "
            "10.0 MiB allowed");
}

TEST(FailureTest, SaysWhatTheDeviceHas) {
  Failure failure = Make(Failure::Reason::kDeviceMemory, "device");
  failure.rounded_bytes = Mebibytes(4);
  failure.largest_free_bytes = Mebibytes(2);
  failure.reserved_bytes = Mebibytes(30);
  failure.device_free_bytes = Mebibytes(2);
  failure.device_total_bytes = Mebibytes(32);
  EXPECT_EQ(failure.ToString(),
            "device: cannot allocate 3.0 MiB on device:0: the device is out of "
            "memory; asked of the system: 4.0 MiB; largest cached block: 2.0 "
            "MiB; reserved: 30.0 MiB; device: 2.0 MiB free of 32.0 MiB");
}

TEST(FailureTest, LeavesOutWhatIsUnknown) {
  const Failure failure = Make(Failure::Reason::kDeviceMemory, "fault");
  EXPECT_EQ(failure.ToString(),
            "fault: cannot allocate 3.0 MiB on device:0: the device is out of "
            "memory");
}

TEST(FailureTest, SaysWhatTheLimitAllows) {
  Failure failure = Make(Failure::Reason::kLimit, "chunk_pool");
  failure.reserved_bytes = Mebibytes(9);
  failure.limit_bytes = Mebibytes(10);
  EXPECT_EQ(failure.ToString(),
            "chunk_pool: cannot allocate 3.0 MiB on device:0: 9.0 MiB reserved "
            "of 10.0 MiB allowed");
}

TEST(FailureTest, NamesTheStatusOfADeviceCall) {
  Failure failure = Make(Failure::Reason::kDevice, "device");
  failure.status = Status::kIllegalAddress;
  failure.detail = "debug fill";
  EXPECT_EQ(failure.ToString(),
            "device: cannot allocate 3.0 MiB on device:0: a device call failed "
            "with IllegalAddress (700) (debug fill)");
}

TEST(FailureTest, OnlyLackOfMemoryIsExhaustion) {
  using Reason = Failure::Reason;
  for (const Reason reason : {Reason::kDeviceMemory, Reason::kHostMemory,
                              Reason::kLimit, Reason::kBudget}) {
    EXPECT_TRUE(Make(reason, "").IsExhaustion());
  }
  for (const Reason reason :
       {Reason::kNone, Reason::kNoGrowth, Reason::kTooLarge,
        Reason::kBadRequest, Reason::kDevice}) {
    EXPECT_FALSE(Make(reason, "").IsExhaustion());
  }
}

}  // namespace
}  // namespace strata
