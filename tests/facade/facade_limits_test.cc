// Messages and behaviour of a facade when a limit or the system refuses a
// request.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/tests/facade/facade_fixture.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class FacadeLimitsTest : public FacadeFixture {
 protected:
  // The message of the refusal; "" if the request succeeds.
  std::string RefusalOf(Place place, std::size_t bytes) {
    try {
      facade().Alloc(place, bytes);
      return "";
    } catch (const OutOfMemory& error) {
      return error.what();
    }
  }
};

// The size of the device is no advice for host memory.
TEST_F(FacadeLimitsTest, OfPinnedMemoryNothingIsAdvisedByTheDevice) {
  Build("strata_pinned_limit=1MiB");
  EXPECT_THAT(RefusalOf(PinnedPlace(0), Mebibytes(2)),
              AllOf(HasSubstr("1.0 MiB allowed"), Not(HasSubstr("device: ")),
                    Not(HasSubstr("higher by"))));
}

TEST_F(FacadeLimitsTest, ALimitThatLeavesRoomIsNotAdvisedToRise) {
  Build("allocator_strategy=bfc,bfc_two_ended,gpu_memory_limit_mb=80");
  std::vector<AllocationPtr> live;
  std::string refusal;
  while (refusal.empty()) {
    try {
      live.push_back(facade().Alloc(kPlace, Mebibytes(1)));
    } catch (const OutOfMemory& error) {
      refusal = error.what();
    }
  }
  EXPECT_THAT(refusal, AllOf(HasSubstr("two ends have one region"),
                             Not(HasSubstr("higher by"))));
}

// The memory still counts, and the facade offers it to the system again before
// a request fails.
TEST_F(FacadeLimitsTest, WhatTheSystemDoesNotTakeBackCounts) {
  Build("allocator_strategy=auto_growth,gpu_memory_limit_mb=40");
  facade().Alloc(kPlace, Mebibytes(30)).reset();
  FaultRule twice = FailNth(DeviceCall::kMemFree, 1);
  twice.count = 2;
  device().AddFault(twice);
  EXPECT_EQ(facade().Release(kPlace), 0U);
  EXPECT_EQ(facade().GetStats(kPlace).reserved_bytes, Mebibytes(30));
  const AllocationPtr held = facade().Alloc(kPlace, Mebibytes(20));
  EXPECT_EQ(facade().GetStats(kPlace).reserved_bytes, Mebibytes(20));
  EXPECT_EQ(Count(DeviceCall::kMemFree), 3U);
}

// A limit counts bytes, not allocation steps of the system.
TEST_F(FacadeLimitsTest, AnImpossibleRequestCostsNoCacheOfSmallChunks) {
  Build("auto_growth_chunk_rule=exact,gpu_memory_limit_mb=50");
  const AllocationPtr live = facade().Alloc(kPlace, Mebibytes(45));
  std::vector<AllocationPtr> small;
  for (int i = 0; i < 6; ++i) small.push_back(facade().Alloc(kPlace, 4096));
  small.clear();
  const std::size_t reserved = facade().GetStats(kPlace).reserved_bytes;
  EXPECT_NE(RefusalOf(kPlace, Mebibytes(12)), "");
  EXPECT_EQ(facade().GetStats(kPlace).reserved_bytes, reserved);
}

// The limit in TensorFlow's environment is for its own allocator, not for plain
// memory.
TEST_F(FacadeLimitsTest, MemoryWithoutAStrategyHasNoLimitOfAStrategy) {
  setenv("TF_CPU_ALLOCATOR_USE_BFC", "1", 1);
  Build("strata_tf_environment");
  EXPECT_EQ(facade().GetStats(HostPlace()).limit_bytes, Gibibytes(64));
  Build("strata_tf_environment,use_system_allocator");
  unsetenv("TF_CPU_ALLOCATOR_USE_BFC");
  EXPECT_EQ(facade().GetStats(HostPlace()).limit_bytes, 0U);
}

// tf_bfc R34, with stamps, and no caller that sets the safe stamp.
TEST_F(FacadeLimitsTest, StampsAreSafeOnceTheStreamsWereWaitedFor) {
  Build("allocator_strategy=bfc,bfc_timestamps,gpu_memory_limit_mb=16");
  {
    std::vector<AllocationPtr> live;
    for (const std::size_t size : {2U, 2U, 4U}) {
      live.push_back(facade().Alloc(kPlace, Mebibytes(size)));
    }
  }
  facade().Alloc(kPlace, Mebibytes(12)).reset();
  EXPECT_EQ(facade().Release(kPlace),
            facade().GetStats(kPlace).peak_reserved_bytes);
  EXPECT_EQ(facade().GetStats(kPlace).reserved_bytes, 0U);
}

// A loan that small blocks can share would be larger than the free memory of
// the other stream.
TEST_F(FacadeLimitsTest, ASmallRequestIsServedFromLessThanASharedLoan) {
  for (const std::string strategy : {"auto_growth", "virtual_memory"}) {
    SCOPED_TRACE(strategy);
    Build("allocator_strategy=" + strategy + ",gpu_memory_limit_mb=2");
    const AllocationPtr first = facade().Alloc(kPlace, 256);
    const AllocationPtr second = facade().Alloc(kPlace, 256, NewStream());
    EXPECT_NE(second, nullptr);
    EXPECT_LE(facade().GetStats(kPlace).peak_reserved_bytes, Mebibytes(2));
  }
}

// A release waits once, for any number of chunks.
TEST_F(FacadeLimitsTest, ManyIdleChunksMakeRoomAtTheCostOfOneWait) {
  Build("allocator_strategy=auto_growth");
  {
    std::vector<AllocationPtr> live;
    for (int i = 0; i < 40; ++i) {
      live.push_back(facade().Alloc(kPlace, Kibibytes(900)));
    }
  }
  ASSERT_EQ(facade().GetStats(kPlace).reserved_bytes, Mebibytes(40));
  const std::uint64_t waits = Count(DeviceCall::kStreamSynchronize);
  const std::uint64_t frees = Count(DeviceCall::kMemFree);
  const AllocationPtr large = facade().Alloc(kPlace, Mebibytes(30));
  EXPECT_EQ(Count(DeviceCall::kMemFree), frees + 15);
  EXPECT_LE(Count(DeviceCall::kStreamSynchronize), waits + 1);
  EXPECT_EQ(facade().GetStats(kPlace).reserved_bytes, Mebibytes(40));
}

}  // namespace
}  // namespace strata
