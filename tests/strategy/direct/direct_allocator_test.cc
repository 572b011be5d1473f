#include "strata/strategy/direct/direct_allocator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "strata/tests/testing/layers/test_place.h"

namespace strata {
namespace {

using ::testing::ElementsAre;

class DirectAllocatorTest : public ::testing::Test {
 protected:
  static TestPlaceOptions Direct() {
    TestPlaceOptions options;
    options.strategy = "direct";
    options.limit_bytes = Mebibytes(10);
    return options;
  }

  TestPlace place_{Direct()};
  TestChain chain_ = place_.AddChain();
};

// cuda_semantics.md H3, M6: the system may hand the memory to any user at once.
TEST_F(DirectAllocatorTest, AFreeWaitsForItsStreamThenCallsTheSystem) {
  std::vector<DeviceCall> calls;
  place_.device().SetCallObserver([&calls](const CallRecord& call) {
    if (IsEntryPoint(call.call)) calls.push_back(call.call);
  });
  chain_->Allocate(1000).reset();
  place_.device().SetCallObserver(nullptr);
  EXPECT_THAT(calls,
              ElementsAre(DeviceCall::kMemAlloc, DeviceCall::kStreamSynchronize,
                          DeviceCall::kMemFree));
}

TEST_F(DirectAllocatorTest, KeepsNothing) {
  chain_->Allocate(Mebibytes(3)).reset();
  EXPECT_EQ(place_.pool()->reserved_bytes(), 0U);
  EXPECT_EQ(chain_->Release(), 0U);
  EXPECT_EQ(chain_->hit_path(), nullptr);
}

TEST_F(DirectAllocatorTest, RoundsNothing) {
  const AllocationPtr odd = chain_->Allocate(1001);
  EXPECT_EQ(odd->size(), 1001U);
  EXPECT_EQ(odd->base(), odd->data());
}

TEST_F(DirectAllocatorTest, TheLimitOfThePlaceHolds) {
  const AllocationPtr most = chain_->Allocate(Mebibytes(10));
  Failure failure;
  EXPECT_EQ(chain_->AllocateOrNull(Request{1}, failure), nullptr);
  EXPECT_EQ(failure.reason, Failure::Reason::kLimit);
}

TEST_F(DirectAllocatorTest, BelongsToItsStream) {
  EXPECT_EQ(chain_->stream(), chain_.stream());
  EXPECT_NE(chain_->stream().uid, 0U);
}

}  // namespace
}  // namespace strata
