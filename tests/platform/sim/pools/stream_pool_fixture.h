#ifndef STRATA_TESTS_PLATFORM_SIM_POOLS_STREAM_POOL_FIXTURE_H_
#define STRATA_TESTS_PLATFORM_SIM_POOLS_STREAM_POOL_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstdint>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/memory/device_memory.h"
#include "strata/platform/sim/pools/pool_table.h"
#include "strata/platform/sim/pools/stream_pool.h"
#include "strata/platform/stream.h"
#include "strata/tests/platform/sim/pools/fake_stream_order.h"

namespace strata::sim {

// The pools of a device with 64 frames, and streams run by hand. `a_` has
// pending work.
class StreamPoolFixture : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kFrames = 64;
  static constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

  StreamPoolFixture() { order_.Submit(a_); }

  StreamPool& pool() { return *table_.Find(table_.default_pool()); }

  // Returns a null address if there is no memory.
  DevicePtr AllocFrom(StreamPool* from, std::uint64_t bytes,
                      const Stream& stream) {
    DevicePtr ptr = 0;
    const Status status = table_.Allocate(from, bytes, stream, &order_, &ptr);
    EXPECT_EQ(status, ptr == 0 ? Status::kMemoryAllocation : Status::kSuccess);
    return ptr;
  }
  DevicePtr Alloc(std::uint64_t bytes, const Stream& stream) {
    return AllocFrom(&pool(), bytes, stream);
  }
  // True if `stream` gets memory, but not the memory at `ptr`.
  bool GetsOther(DevicePtr ptr, std::uint64_t bytes, const Stream& stream) {
    const DevicePtr got = Alloc(bytes, stream);
    return got != 0 && got != ptr;
  }
  // In stream order, after one more piece of work.
  void FreeAsync(DevicePtr ptr, const Stream& stream) {
    order_.Submit(stream);
    EXPECT_TRUE(table_.Free(ptr, order_.Last(stream), order_));
  }
  void FreeNow(DevicePtr ptr) {
    EXPECT_TRUE(table_.Free(ptr, std::nullopt, order_));
  }
  // The host has waited for all completed work.
  void Synchronize() {
    table_.OnSynchronize(order_, [this](const StreamPoint& point) {
      return order_.IsDone(point);
    });
  }
  // The host has waited for the work submitted to `stream`.
  void Synchronize(const Stream& stream) {
    table_.OnSynchronize(order_, [&stream](const StreamPoint& point) {
      return point.device == stream.device && point.stream_uid == stream.uid;
    });
  }

  void Set(StreamPool* on, PoolAttribute attribute, std::uint64_t value) {
    EXPECT_EQ(on->SetAttribute(attribute, value), Status::kSuccess);
  }
  std::uint64_t Get(const StreamPool& of, PoolAttribute attribute) {
    std::uint64_t value = 0;
    EXPECT_EQ(of.GetAttribute(attribute, &value), Status::kSuccess);
    return value;
  }
  void AllowReuse(StreamPool* on, bool follow, bool opportunistic,
                  bool internal) {
    Set(on, PoolAttribute::kReuseFollowEventDependencies, follow ? 1 : 0);
    Set(on, PoolAttribute::kReuseAllowOpportunistic, opportunistic ? 1 : 0);
    Set(on, PoolAttribute::kReuseAllowInternalDependencies, internal ? 1 : 0);
  }
  std::uint64_t TakenBytes() const {
    return memory_.total_bytes() - memory_.free_bytes();
  }

  const Stream a_ = FakeStreamOrder::MakeStream(10);
  const Stream b_ = FakeStreamOrder::MakeStream(11);
  const Stream c_ = FakeStreamOrder::MakeStream(12);
  FakeStreamOrder order_;
  DeviceMemory memory_{0, kFrames* kFrameBytes};
  PoolTable table_{0, &memory_};
};

}  // namespace strata::sim

#endif  // STRATA_TESTS_PLATFORM_SIM_POOLS_STREAM_POOL_FIXTURE_H_
