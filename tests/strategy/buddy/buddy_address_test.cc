// A BuddyPool over a system that reuses addresses. Fault numbers are those of
// paddle.md §5.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "strata/allocation/chunks/chunk_pool.h"
#include "strata/allocation/system/system_allocator.h"
#include "strata/base/size.h"
#include "strata/strategy/buddy/buddy_pool.h"

namespace strata {
namespace {

// A system that returns an address again after its free, as real systems do.
class OneAddress final : public SystemAllocator {
 public:
  OneAddress() : SystemAllocator(DevicePlace(0), 512) {}
  const char* name() const override { return "one_address"; }

 private:
  void* Obtain(const Request& /*request*/, Failure& failure) noexcept override {
    failure.reason = Failure::Reason::kDeviceMemory;
    if (std::exchange(taken_, true)) return nullptr;
    return reinterpret_cast<void*>(std::uintptr_t{1} << 40);
  }
  Status Return(void* /*data*/, std::size_t /*bytes*/) noexcept override {
    taken_ = false;
    return Status::kSuccess;
  }

  bool taken_ = false;
};

// Fault B9: chunks were identified by the address and size of their first
// block, and the keys of released chunks stayed. So a free block at the start
// of a larger new chunk, with the size of an old chunk, was released to the
// system.
TEST(BuddyPoolAddressTest, B9ABlockThatLooksLikeAnOldChunkStays) {
  StrategyOptions options;
  options.Edit<BuddyOptions>().initial_gpu_memory_in_mb =
      options.Edit<BuddyOptions>().reallocate_gpu_memory_in_mb = 1;
  const auto pool =
      std::make_shared<ChunkPool>(std::make_shared<OneAddress>(), 0, nullptr);
  BuddySource source("test", pool, std::make_shared<ChainStream>(),
                     BuddySizes(options, PlaceKind::kDevice));
  BuddyPool buddies(source);
  Failure failure;
  const auto get = [&](std::size_t bytes) {
    return buddies.TryAllocate(Request{bytes}, bytes, failure)->block();
  };
  Block* old = get(Mebibytes(1));
  const void* address = old->data;
  buddies.Give(old);
  source.Give(buddies.DetachIdle(1));
  buddies.Give(get(Mebibytes(3)));
  Block* low = get(Mebibytes(1));
  Block* high = get(Mebibytes(1));
  ASSERT_EQ(low->data, address);
  ASSERT_EQ(low->size, Mebibytes(1));
  ASSERT_EQ(high->chunk, low->chunk);
  buddies.Give(low);
  EXPECT_EQ(buddies.Idle(0).bytes, 0U);
  EXPECT_EQ(buddies.DetachIdle(1), nullptr);
  EXPECT_EQ(pool->reserved_bytes(), Mebibytes(3));
  buddies.Give(high);
  source.Give(buddies.DetachIdle(1));
}

}  // namespace
}  // namespace strata
