// The cache of cuda_malloc_async is emptied before the driver is likely to
// grow.

#include <gtest/gtest.h>

#include "strata/tests/strategy/cuda_malloc_async/cuda_malloc_async_cache_fixture.h"

namespace strata {
namespace {

class CudaMallocAsyncGrowthTest : public CudaMallocAsyncCacheFixture {};

// The freed memory of the chain lies in pieces, so the driver may need twice
// the requested size of it.
TEST_F(CudaMallocAsyncGrowthTest, IsEmptiedBeforeTheDriverMayGrow) {
  const Chain chain = Start();
  chain->Allocate(Mebibytes(32)).reset();
  KeepOne(chain, 1024);
  AllocationPtr first = chain->Allocate(Mebibytes(12));
  EXPECT_EQ(KeptIn(chain), 1024U) << "32 MiB are idle";
  AllocationPtr second = chain->Allocate(Mebibytes(9));
  EXPECT_EQ(KeptIn(chain), 1024U) << "20 MiB are idle";
  StartLog();
  AllocationPtr third = chain->Allocate(Mebibytes(6));
  EXPECT_EQ(KeptIn(chain), 0U) << "11 MiB are idle";
  ASSERT_GE(LoggedWork().size(), 2U);
  EXPECT_EQ(LoggedWork()[0].first, DeviceCall::kFreeAsync);
  EXPECT_EQ(LoggedWork()[1].first, DeviceCall::kMallocFromPoolAsync);
}

TEST_F(CudaMallocAsyncGrowthTest, ASmallRequestIsNotTakenForGrowth) {
  const Chain chain = Start();
  KeepOne(chain, 1024);
  AllocationPtr small = chain->Allocate(Mebibytes(2) - 256);
  EXPECT_EQ(KeptIn(chain), 1024U);
  AllocationPtr large = chain->Allocate(Mebibytes(2));
  EXPECT_EQ(KeptIn(chain), 0U);
}

// The cached block lies between the pieces.
TEST_F(CudaMallocAsyncGrowthTest, WhatIsKeptCountsAgainstWhatIsIdle) {
  const Chain chain = Start();
  chain->Allocate(Mebibytes(8)).reset();
  Admit(chain, Kibibytes(64), 4).clear();
  ASSERT_EQ(KeptIn(chain), Kibibytes(256));
  chain->Allocate(Kibibytes(3800)).reset();
  EXPECT_EQ(KeptIn(chain), Kibibytes(256)) << "of 8 MiB half but for 256 KiB";
  chain->Allocate(Kibibytes(3900)).reset();
  EXPECT_EQ(KeptIn(chain), 0U);
}

// After a release, the driver has to grow again.
TEST_F(CudaMallocAsyncGrowthTest, WhatWasGivenBackIsNotIdle) {
  const Chain chain = Start();
  const AllocationPtr live = chain->Allocate(Mebibytes(4));
  chain->Allocate(Mebibytes(30)).reset();
  chain->Release();
  KeepOne(chain, 1024);
  AllocationPtr large = chain->Allocate(Mebibytes(2));
  EXPECT_EQ(KeptIn(chain), 0U);
}

TEST_F(CudaMallocAsyncGrowthTest, WhatAGraphMayHaveHadIsNotIdle) {
  const Chain chain = Start();
  gate().Announce();
  chain->Allocate(Mebibytes(30)).reset();
  gate().Withdraw();
  KeepOne(chain, 1024);
  AllocationPtr large = chain->Allocate(Mebibytes(2));
  EXPECT_EQ(KeptIn(chain), 0U);
  large.reset();
  chain->Allocate(Mebibytes(40)).reset();
  KeepOne(chain, 1024);
  large = chain->Allocate(Mebibytes(12));
  EXPECT_EQ(KeptIn(chain), 1024U) << "40 MiB of its own are idle";
}

// The stream may not reuse it yet.
TEST_F(CudaMallocAsyncGrowthTest, WhatAnotherStreamHadIsNotIdle) {
  const Chain chain = Start();
  NewChain()->Allocate(Mebibytes(30)).reset();
  KeepOne(chain, 1024);
  AllocationPtr large = chain->Allocate(Mebibytes(2));
  EXPECT_EQ(KeptIn(chain), 0U);
}

}  // namespace
}  // namespace strata
