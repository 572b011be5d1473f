#ifndef STRATA_TESTS_PLATFORM_SIM_POOLS_SIM_POOLS_FIXTURE_H_
#define STRATA_TESTS_PLATFORM_SIM_POOLS_SIM_POOLS_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/pools/stream_pool.h"
#include "strata/tests/platform/sim/device/sim_fixture.h"

namespace strata::sim {

inline MemProperties OnDevice(int ordinal, ShareType share = ShareType::kNone) {
  MemProperties properties;
  properties.location.id = ordinal;
  properties.share = share;
  return properties;
}

// Two simulated devices, their pools and a stream of the first.
class SimPoolsFixture : public SimFixture {
 protected:
  static constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

  MemPool DefaultPool(int ordinal = 0) {
    MemPool pool;
    EXPECT_EQ(device(ordinal).DefaultMemPool(&pool), Status::kSuccess);
    return pool;
  }
  MemPool NewPool(const MemProperties& properties = {},
                  std::size_t max_bytes = 0) {
    MemPool pool;
    EXPECT_EQ(device().PoolCreate(&pool, properties, max_bytes),
              Status::kSuccess);
    return pool;
  }
  DevicePtr AllocAsync(std::size_t bytes, MemPool pool, const Stream& stream) {
    DevicePtr ptr = 0;
    EXPECT_EQ(
        device(stream.device).MallocFromPoolAsync(&ptr, bytes, pool, stream),
        Status::kSuccess);
    return ptr;
  }
  void FreeAsync(DevicePtr ptr, const Stream& stream) {
    EXPECT_EQ(device(stream.device).FreeAsync(ptr, stream), Status::kSuccess);
  }
  std::uint64_t Get(MemPool pool, PoolAttribute attribute) {
    std::uint64_t value = 0;
    EXPECT_EQ(device().PoolGetAttribute(pool, attribute, &value),
              Status::kSuccess);
    return value;
  }
  std::uint64_t Reserved(MemPool pool) {
    return Get(pool, PoolAttribute::kReservedCurrent);
  }
  // Gives the default pool one fully free chunk.
  void FillDefaultPool() {
    FreeAsync(AllocAsync(kMiB, DefaultPool(), stream_), stream_);
    ASSERT_EQ(Reserved(DefaultPool()), kPoolGrowthBytes);
  }

  const Stream stream_ = NewStream();
};

}  // namespace strata::sim

#endif  // STRATA_TESTS_PLATFORM_SIM_POOLS_SIM_POOLS_FIXTURE_H_
