#ifndef STRATA_TESTS_TESTING_LAYERS_COUNTING_ALLOCATOR_H_
#define STRATA_TESTS_TESTING_LAYERS_COUNTING_ALLOCATOR_H_

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "strata/allocation/block_flags.h"
#include "strata/allocation/decorator.h"
#include "strata/platform/locks/spin_lock.h"

namespace strata {

// Counts the calls that pass through it. Fails the test if the layer above
// calls it with a lock held.
//
// Threads: any thread.
class CountingAllocator final : public Decorator {
 public:
  explicit CountingAllocator(std::shared_ptr<Allocator> underlying)
      : Decorator(std::move(underlying)) {}

  std::uint64_t allocations() const { return allocations_; }
  std::uint64_t frees() const { return frees_; }
  std::uint64_t live() const { return allocations_ - frees_; }
  std::uint64_t last_bytes() const { return last_bytes_; }
  std::uint32_t last_flags() const { return last_flags_; }
  // Bytes that the layers above skipped at the front of the block freed last.
  std::size_t last_freed_offset() const { return last_freed_offset_; }
  bool last_freed_had(BlockFlags flag) const {
    return (last_freed_flags_ & flag) != 0;
  }

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override {
    EXPECT_EQ(HeldLocks(), 0);
    last_bytes_ = request.bytes;
    last_flags_ = request.flags;
    Allocation* allocation = Decorator::TryAllocate(request, failure);
    if (allocation != nullptr) ++allocations_;
    return allocation;
  }
  void DoFree(Allocation* allocation) noexcept override {
    EXPECT_EQ(HeldLocks(), 0);
    last_freed_offset_ = allocation->block()->offset_bytes();
    last_freed_flags_ = FlagsOf(*allocation->block());
    Decorator::DoFree(allocation);
    ++frees_;
  }
  const char* name() const override { return "counting"; }
  HitPath* hit_path() override { return nullptr; }

 private:
  std::atomic<std::uint64_t> allocations_{0};
  std::atomic<std::uint64_t> frees_{0};
  std::atomic<std::uint64_t> last_bytes_{0};
  std::atomic<std::uint32_t> last_flags_{0};
  std::atomic<std::size_t> last_freed_offset_{0};
  std::atomic<unsigned> last_freed_flags_{0};
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_LAYERS_COUNTING_ALLOCATOR_H_
