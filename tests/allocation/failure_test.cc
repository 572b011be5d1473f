#include "strata/allocation/failure.h"

#include <gtest/gtest.h>

#include "strata/base/size.h"

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
  failure.limit_flag = "--strata_in_use_limit";
  failure.rounded_bytes = Mebibytes(3);  // no layer was asked for it
  EXPECT_EQ(failure.ToString(),
            "limit: cannot allocate 3.0 MiB on device:0: 9.0 MiB in use of "
            "10.0 MiB allowed by --strata_in_use_limit");
}

TEST(FailureTest, SaysWhatTheDeviceHas) {
  Failure failure = Make(Failure::Reason::kDeviceMemory, "device");
  failure.rounded_bytes = Mebibytes(4);
  failure.largest_free_bytes = Mebibytes(2);
  failure.reserved_bytes = Mebibytes(30);
  failure.device_free_bytes = Mebibytes(2);
  failure.device_total_bytes = Mebibytes(32);
  failure.knows_place = true;
  failure.live_bytes = Mebibytes(26);
  failure.cached_bytes = Mebibytes(4);
  EXPECT_EQ(failure.ToString(),
            "device: cannot allocate 3.0 MiB on device:0: the device is out of "
            "memory; asked of the system: 4.0 MiB; in use: 26.0 MiB; free in "
            "cached blocks: 4.0 MiB; largest cached block: 2.0 MiB; reserved: "
            "30.0 MiB; device: 2.0 MiB free of 32.0 MiB");
}

TEST(FailureTest, SaysEverythingInOneUnit) {
  Failure failure = Make(Failure::Reason::kDeviceMemory, "device");
  failure.requested_bytes = failure.rounded_bytes = Gibibytes(3);
  failure.reserved_bytes = Gibibytes(30);
  failure.device_free_bytes = Mebibytes(512);
  failure.device_total_bytes = Gibibytes(80);
  EXPECT_EQ(failure.ToString(),
            "device: cannot allocate 3.00 GiB on device:0: the device is out "
            "of memory; asked of the system: 3.00 GiB; reserved: 30.00 GiB; "
            "device: 0.50 GiB free of 80.00 GiB");
  failure.device_free_bytes = Mebibytes(2);  // would print as 0.00 GiB
  EXPECT_EQ(failure.ToString(),
            "device: cannot allocate 3072.0 MiB on device:0: the device is out "
            "of memory; asked of the system: 3072.0 MiB; reserved: 30720.0 "
            "MiB; device: 2.0 MiB free of 81920.0 MiB");
  failure.requested_bytes = 1000;
  failure.rounded_bytes = Mebibytes(2);
  failure.reserved_bytes = 0;
  EXPECT_EQ(failure.ToString(),
            "device: cannot allocate 1000 bytes on device:0: the device is out "
            "of memory; asked of the system: 2.0 MiB; device: 2.0 MiB free of "
            "81920.0 MiB");
}

TEST(FailureTest, ALimitIsInTheUnitOfItsFlag) {
  Failure failure = Make(Failure::Reason::kLimit, "chunk_pool");
  failure.requested_bytes = Gibibytes(3);
  failure.reserved_bytes = Gibibytes(30);
  failure.limit_bytes = Gibibytes(32);
  failure.limit_flag = "--gpu_memory_limit_mb";
  EXPECT_EQ(failure.ToString(),
            "chunk_pool: cannot allocate 3072.0 MiB on device:0: 30720.0 MiB "
            "reserved of 32768.0 MiB allowed by --gpu_memory_limit_mb");
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
