#ifndef STRATA_TESTS_STRATEGY_AUTO_GROWTH_AUTO_GROWTH_LOANS_FIXTURE_H_
#define STRATA_TESTS_STRATEGY_AUTO_GROWTH_AUTO_GROWTH_LOANS_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "strata/tests/strategy/mebibyte.h"
#include "strata/tests/testing/layers/test_place.h"

namespace strata {

// Two streams of a place with auto_growth. At the end of a test, both chains
// must be consistent, and all memory must have been released.
class AutoGrowthLoansFixture : public ::testing::Test {
 protected:
  void Use(const TestPlaceOptions& options) {
    place_ = std::make_unique<TestPlace>(options);
    a_ = place_->AddChain();
    b_ = place_->AddChain();
  }
  // Work in streams completes on request of the test.
  void UseManual(bool wait = false) {
    TestPlaceOptions options;
    options.progress = "manual";
    options.strategy_options.cross_stream_wait = wait;
    Use(options);
  }
  void TearDown() override {
    if (place_ == nullptr) return;
    for (const TestChain& chain : {a_, b_}) {
      if (chain.strategy != nullptr) {
        EXPECT_TRUE(chain.auto_growth().IsConsistent());
      }
    }
    a_ = b_ = TestChain();
    place_->pool()->Close();  // ends deferred work
    EXPECT_EQ(place_->pool()->reserved_bytes(), 0U);
    EXPECT_EQ(LeakedAllocations(place_->device()), 0U);
  }

  // Submits work to the stream of `chain`. It completes on request.
  void Submit(const TestChain& chain) {
    ASSERT_EQ(place_->device().Enqueue(chain.stream(), nullptr, 0, 1000, 0),
              Status::kSuccess);
  }
  void Finish() { place_->device().StepAll(); }
  std::uint64_t Calls(DeviceCall call) const {
    return place_->device().CallCount(call);
  }
  std::uint64_t Growths() const { return Calls(DeviceCall::kMemAlloc); }
  // Leaves chain A one chunk of 20 MiB with 11 MiB free at its start.
  AllocationPtr LeaveFreeBlock() {
    AllocationPtr used = a_->Allocate(9 * kMiB);
    AllocationPtr low = a_->Allocate(8 * kMiB);
    low.reset();
    return used;
  }

  std::unique_ptr<TestPlace> place_;
  TestChain a_;
  TestChain b_;
};

}  // namespace strata

#endif  // STRATA_TESTS_STRATEGY_AUTO_GROWTH_AUTO_GROWTH_LOANS_FIXTURE_H_
