#ifndef STRATA_TESTS_TESTING_DEVICES_POOL_FIXTURE_H_
#define STRATA_TESTS_TESTING_DEVICES_POOL_FIXTURE_H_

#include <cstddef>
#include <cstdint>
#include <limits>

#include "strata/tests/testing/devices/device_fixture.h"

namespace strata {

inline constexpr std::uint64_t kKeepAll =
    std::numeric_limits<std::uint64_t>::max();
// Size of the blocks of Take().
inline constexpr std::size_t kTakenBytes = std::size_t{32} << 20;

// A test of pools of device 0. Skips on devices without pools.
class PoolFixture : public DeviceTest {
 protected:
  void SetUp() override {
    DeviceTest::SetUp();
    if (IsSkipped()) return;
    if (!device().caps().mem_pools) GTEST_SKIP() << "no memory pools";
  }

  // A pool that keeps its memory. It reuses one stream's blocks in another
  // stream only after the host has waited for them. `max_bytes` 0: no limit.
  MemPool NewPool(std::size_t max_bytes = 0) {
    MemPool pool;
    EXPECT_EQ(device().PoolCreate(&pool, MemProperties{}, max_bytes),
              Status::kSuccess);
    AtEnd([this, pool] {
      EXPECT_EQ(device().PoolDestroy(pool), Status::kSuccess);
    });
    Set(pool, PoolAttribute::kReleaseThreshold, kKeepAll);
    Set(pool, PoolAttribute::kReuseFollowEventDependencies, 0);
    Set(pool, PoolAttribute::kReuseAllowOpportunistic, 0);
    Set(pool, PoolAttribute::kReuseAllowInternalDependencies, 0);
    return pool;
  }

  void Set(MemPool pool, PoolAttribute attribute, std::uint64_t value) {
    EXPECT_EQ(device().PoolSetAttribute(pool, attribute, value),
              Status::kSuccess);
  }

  std::uint64_t Get(MemPool pool, PoolAttribute attribute) {
    std::uint64_t value = 0;
    EXPECT_EQ(device().PoolGetAttribute(pool, attribute, &value),
              Status::kSuccess);
    return value;
  }

  DevicePtr Take(MemPool pool, const Stream& stream,
                 std::size_t bytes = kTakenBytes) {
    DevicePtr ptr = 0;
    EXPECT_EQ(device().MallocFromPoolAsync(&ptr, bytes, pool, stream),
              Status::kSuccess);
    return ptr;
  }

  void Give(DevicePtr ptr, const Stream& stream) {
    EXPECT_EQ(device().FreeAsync(ptr, stream), Status::kSuccess);
  }

  // A block that `stream` has freed, behind long work if `busy`. The host has
  // not waited for it.
  DevicePtr FreedBlock(MemPool pool, const Stream& stream, bool busy) {
    const DevicePtr ptr = Take(pool, stream);
    if (busy) LongWork(stream);
    Give(ptr, stream);
    return ptr;
  }
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_DEVICES_POOL_FIXTURE_H_
