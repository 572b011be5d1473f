// Pools exported from the process by a descriptor and imported again: P11.

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "strata/tests/platform/sim/pools/sim_pools_fixture.h"

namespace strata::sim {
namespace {

class SimDevicePoolShareTest : public SimPoolsFixture {
 protected:
  Shareable Export(MemPool pool) {
    Shareable shareable;
    EXPECT_EQ(device().PoolExport(pool, ShareType::kPosixFd, &shareable),
              Status::kSuccess);
    return shareable;
  }
};

TEST_F(SimDevicePoolShareTest, ImportedPoolNamesTheSamePool) {  // P11
  const MemPool pool = NewPool(OnDevice(0, ShareType::kPosixFd));
  AllocAsync(kMiB, pool, stream_);
  const Shareable shareable = Export(pool);
  MemPool imported;
  EXPECT_EQ(device(1).PoolImport(&imported, ShareType::kPosixFd, shareable),
            Status::kSuccess);
  close(shareable.fd);
  EXPECT_NE(imported, pool);
  EXPECT_EQ(Get(imported, PoolAttribute::kUsedCurrent), kMiB);
  EXPECT_EQ(device().PoolDestroy(imported), Status::kSuccess);
  EXPECT_EQ(Get(pool, PoolAttribute::kUsedCurrent), kMiB);
}

TEST_F(SimDevicePoolShareTest, ImportedPoolCannotAllocate) {  // P11
  const MemPool pool = NewPool(OnDevice(0, ShareType::kPosixFd));
  const Shareable shareable = Export(pool);
  MemPool imported;
  ASSERT_EQ(device().PoolImport(&imported, ShareType::kPosixFd, shareable),
            Status::kSuccess);
  close(shareable.fd);
  DevicePtr ptr = 0;
  EXPECT_EQ(device().MallocFromPoolAsync(&ptr, kMiB, imported, stream_),
            Status::kInvalidValue);
  Shareable again;
  EXPECT_EQ(device().PoolExport(imported, ShareType::kPosixFd, &again),
            Status::kInvalidValue);
}

TEST_F(SimDevicePoolShareTest, ExportNeedsAPoolMadeForIt) {  // P11
  Shareable shareable;
  EXPECT_EQ(device().PoolExport(DefaultPool(), ShareType::kPosixFd, &shareable),
            Status::kInvalidValue);
  const MemPool pool = NewPool(OnDevice(0, ShareType::kPosixFd));
  EXPECT_EQ(device().PoolExport(pool, ShareType::kFabric, &shareable),
            Status::kInvalidValue);
  EXPECT_EQ(device().PoolExport(pool, ShareType::kPosixFd, nullptr),
            Status::kInvalidValue);
  EXPECT_EQ(shareable.fd, -1);
}

TEST_F(SimDevicePoolShareTest, ImportNeedsALiveExportOfThisPlatform) {
  const MemPool pool = NewPool(OnDevice(0, ShareType::kPosixFd));
  const Shareable shareable = Export(pool);
  MemPool imported;
  EXPECT_EQ(device().PoolImport(nullptr, ShareType::kPosixFd, shareable),
            Status::kInvalidValue);
  EXPECT_EQ(device().PoolImport(&imported, ShareType::kNone, shareable),
            Status::kInvalidValue);
  EXPECT_EQ(device().PoolImport(&imported, ShareType::kPosixFd, Shareable{}),
            Status::kInvalidValue);
  SimPlatform other(SimOptions(2, kFrames));
  MemPool namesake;
  ASSERT_EQ(other.sim_device(0).PoolCreate(&namesake,
                                           OnDevice(0, ShareType::kPosixFd), 0),
            Status::kSuccess);
  ASSERT_EQ(namesake, pool);
  EXPECT_EQ(
      other.sim_device(0).PoolImport(&imported, ShareType::kPosixFd, shareable),
      Status::kInvalidValue);
  ASSERT_EQ(device().PoolDestroy(pool), Status::kSuccess);
  EXPECT_EQ(device().PoolImport(&imported, ShareType::kPosixFd, shareable),
            Status::kInvalidValue);
  close(shareable.fd);
  EXPECT_FALSE(imported);
}

TEST_F(SimDevicePoolShareTest, AnotherFileIsNoExport) {
  Shareable shareable;
  shareable.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(shareable.fd, 0);
  MemPool imported;
  EXPECT_EQ(device().PoolImport(&imported, ShareType::kPosixFd, shareable),
            Status::kInvalidValue);
  close(shareable.fd);
}

TEST_F(SimDevicePoolShareTest, DuplicateOfADescriptorIsAsGood) {
  const MemPool pool = NewPool(OnDevice(0, ShareType::kPosixFd));
  const Shareable shareable = Export(pool);
  Shareable copy;
  copy.fd = dup(shareable.fd);
  close(shareable.fd);
  MemPool imported;
  EXPECT_EQ(device().PoolImport(&imported, ShareType::kPosixFd, copy),
            Status::kSuccess);
  close(copy.fd);
}

}  // namespace
}  // namespace strata::sim
