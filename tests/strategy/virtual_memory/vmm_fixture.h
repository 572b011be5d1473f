#ifndef STRATA_TESTS_STRATEGY_VIRTUAL_MEMORY_VMM_FIXTURE_H_
#define STRATA_TESTS_STRATEGY_VIRTUAL_MEMORY_VMM_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "strata/strategy/virtual_memory/virtual_memory_allocator.h"
#include "strata/tests/strategy/mebibyte.h"
#include "strata/tests/testing/layers/test_place.h"

namespace strata {

// The mapped ranges, as reported to the visitors of a pool.
//
// Threads: any thread.
class RangeLedger {
 public:
  void Note(void* data, std::size_t bytes, int count_change) {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (count_change > 0) {
      EXPECT_TRUE(ranges_.emplace(data, bytes).second) << data;
    } else {
      const auto found = ranges_.find(data);
      ASSERT_NE(found, ranges_.end()) << data;
      EXPECT_EQ(found->second, bytes);
      ranges_.erase(found);
    }
  }
  std::size_t bytes() const {
    const std::lock_guard<std::mutex> guard(mutex_);
    std::size_t sum = 0;
    for (const auto& [data, bytes] : ranges_) sum += bytes;
    return sum;
  }

 private:
  mutable std::mutex mutex_;
  std::map<void*, std::size_t> ranges_;  // guarded by mutex_
};

// A place with virtual_memory. At the end of a test, nothing may leak, and the
// visitors must know every mapping.
class VmmFixture : public ::testing::Test {
 protected:
  VmmFixture() {
    options_.strategy = "virtual_memory";
    options_.memory_bytes = 64 * kMiB;
  }
  void Build() {
    place_ = std::make_unique<TestPlace>(options_);
    ledger_ = std::make_unique<RangeLedger>();
    place_->pool()->AddVisitor(
        [ledger = ledger_.get()](void* data, std::size_t bytes, int change) {
          ledger->Note(data, bytes, change);
        });
    a_ = place_->AddChain();
  }
  void TearDown() override {
    if (place_ == nullptr) return;
    device().ClearFaults();
    for (const TestChain& chain : {a_, b_}) {
      if (chain.strategy != nullptr) {
        EXPECT_TRUE(chain.auto_growth().IsConsistent());
      }
    }
    a_ = b_ = TestChain();
    place_->pool()->Close();
    EXPECT_EQ(reserved(), 0U);
    EXPECT_EQ(device().Leaks().reservations, 0U);
    EXPECT_EQ(device().Leaks().memory_blocks, 0U);
    EXPECT_EQ(device().Leaks().mappings, 0U);
    EXPECT_EQ(device().Leaks().allocations, 0U);
    EXPECT_EQ(ledger_->bytes(), 0U);
  }

  SimDevice& device() const { return place_->device(); }
  ChunkPool& pool() const { return *place_->pool(); }
  std::size_t reserved() const { return pool().reserved_bytes(); }
  std::uint64_t Calls(DeviceCall call) const {
    return device().CallCount(call);
  }
  // Without the ladder of the place, which releases idle memory.
  AllocationPtr TryAllocate(const TestChain& chain, std::size_t bytes) {
    Failure failure;
    return chain->AllocateOrNull(Request{.bytes = bytes, .flags = kNoRetry},
                                 failure);
  }
  // Submits work to the stream of `chain`. It runs on request.
  void Submit(const TestChain& chain) {
    ASSERT_EQ(device().Enqueue(chain.stream(), nullptr, 0, 1000, 0),
              Status::kSuccess);
  }
  // Allocates `count` blocks of `bytes`, and frees every other one.
  std::vector<AllocationPtr> LeaveHalf(const TestChain& chain,
                                       std::size_t bytes, int count) {
    std::vector<AllocationPtr> blocks;
    for (int i = 0; i < count; ++i) blocks.push_back(chain->Allocate(bytes));
    for (std::size_t i = 0; i < blocks.size(); i += 2) blocks[i].reset();
    return blocks;
  }
  // Before the `nth` call from now on, another process allocates `take` bytes
  // or frees `give` bytes.
  void AddStep(DeviceCall call, std::uint64_t nth, std::uint64_t take,
               std::uint64_t give = 0) {
    CapacityStep step;
    step.call = call;
    step.nth = nth;
    step.take_bytes = take;
    step.give_bytes = give;
    device().AddCapacityStep(step);
  }

  TestPlaceOptions options_;
  std::unique_ptr<TestPlace> place_;
  std::unique_ptr<RangeLedger> ledger_;
  TestChain a_;
  TestChain b_;
};

}  // namespace strata

#endif  // STRATA_TESTS_STRATEGY_VIRTUAL_MEMORY_VMM_FIXTURE_H_
