#ifndef STRATA_TESTS_STRATEGY_AUTO_GROWTH_LOANS_FIXTURE_H_
#define STRATA_TESTS_STRATEGY_AUTO_GROWTH_LOANS_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>

#include "strata/tests/strategy/mebibyte.h"
#include "strata/tests/testing/test_place.h"

namespace strata {

// Two streams of a place with auto_growth. When a test is over, each is
// consistent and all went back.
class AutoGrowthLoansFixture : public ::testing::Test {
 protected:
  void Use(const TestPlaceOptions& options) {
    place_ = std::make_unique<TestPlace>(options);
    a_ = place_->AddChain();
    b_ = place_->AddChain();
  }
  // Work in streams is done when a test says so.
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
    place_->pool()->Close();  // what waits there for work in the streams
    EXPECT_EQ(place_->pool()->reserved_bytes(), 0U);
    EXPECT_EQ(LeakedAllocations(place_->device()), 0U);
  }

  // Work in the stream of `chain` that is not done before it is told to.
  void Submit(const TestChain& chain) {
    ASSERT_EQ(place_->device().EnqueueWork(chain.stream(), nullptr, 0, 1000, 0),
              Status::kSuccess);
  }
  void Finish() { place_->device().StepAll(); }
  std::uint64_t Calls(DeviceCall call) const {
    return place_->device().CallCount(call);
  }
  std::uint64_t Growths() const { return Calls(DeviceCall::kMemAlloc); }
  // Leaves chain A with one chunk of 20 MiB that begins with 11 MiB free.
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

#endif  // STRATA_TESTS_STRATEGY_AUTO_GROWTH_LOANS_FIXTURE_H_
