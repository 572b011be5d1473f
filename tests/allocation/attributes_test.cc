#include "strata/allocation/attributes.h"

#include <gtest/gtest.h>

#include <stdexcept>

#include "strata/allocation/allocator.h"
#include "strata/tests/testing/layers/failing_allocator.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

// tf_bfc §2: AllocatorAttributes.

TEST(AllocatorAttributesTest, AskForNothingAtFirst) {
  const AllocatorAttributes none;
  EXPECT_FALSE(none.on_host());
  EXPECT_FALSE(none.nic_compatible());
  EXPECT_FALSE(none.gpu_compatible());
  EXPECT_EQ(none.device_bits(), 0);
  EXPECT_EQ(none.scope_id(), 0);
}

TEST(AllocatorAttributesTest, EachBitIsItsOwn) {
  AllocatorAttributes attributes;
  attributes.set_on_host(true).set_gpu_compatible(true).set_device_bits(0xa5);
  EXPECT_TRUE(attributes.on_host());
  EXPECT_FALSE(attributes.nic_compatible());
  EXPECT_TRUE(attributes.gpu_compatible());
  EXPECT_EQ(attributes.device_bits(), 0xa5);
  attributes.set_on_host(false).set_nic_compatible(true).set_device_bits(1);
  EXPECT_FALSE(attributes.on_host());
  EXPECT_TRUE(attributes.nic_compatible());
  EXPECT_TRUE(attributes.gpu_compatible());
  EXPECT_EQ(attributes.device_bits(), 1);
}

TEST(AllocatorAttributesTest, MergeAsksForBoth) {
  AllocatorAttributes host;
  host.set_on_host(true).set_device_bits(1);
  AllocatorAttributes gpu;
  gpu.set_gpu_compatible(true).set_device_bits(2);
  host.Merge(gpu);
  AllocatorAttributes both;
  both.set_on_host(true).set_gpu_compatible(true).set_device_bits(3);
  EXPECT_EQ(host, both);
}

TEST(AllocatorAttributesTest, MergeTakesTheOnlyScope) {
  AllocatorAttributes scoped;
  scoped.set_scope_id(7);
  AllocatorAttributes plain;
  plain.Merge(scoped);
  EXPECT_EQ(plain.scope_id(), 7);
  plain.Merge(AllocatorAttributes());
  EXPECT_EQ(plain.scope_id(), 7);
  plain.Merge(scoped);
  EXPECT_EQ(plain.scope_id(), 7);
}

TEST(AllocatorAttributesTest, MergeRefusesTwoScopesAndChangesNothing) {
  AllocatorAttributes one;
  one.set_scope_id(1);
  const AllocatorAttributes before = one;
  AllocatorAttributes two;
  two.set_scope_id(2).set_on_host(true);
  EXPECT_THROW(one.Merge(two), std::invalid_argument);
  EXPECT_EQ(one, before);
}

TEST(AllocatorAttributesTest, ComparesAsSetsOfBits) {
  const AllocatorAttributes none;
  AllocatorAttributes host;
  host.set_on_host(true);
  AllocatorAttributes host_gpu = host;
  host_gpu.set_gpu_compatible(true);
  AllocatorAttributes nic;
  nic.set_nic_compatible(true);
  EXPECT_TRUE(none.IsEqualOrLessRestrictiveThan(none));
  EXPECT_TRUE(none.IsEqualOrLessRestrictiveThan(host));
  EXPECT_TRUE(host.IsEqualOrLessRestrictiveThan(host_gpu));
  EXPECT_FALSE(host_gpu.IsEqualOrLessRestrictiveThan(host));
  EXPECT_FALSE(nic.IsEqualOrLessRestrictiveThan(host_gpu));
}

// tf_bfc R42: AllocationAttributes.

TEST(AllocationAttributesTest, DefaultIsARequestWithoutFlags) {
  const Request request = ToRequest(100, AllocationAttributes());
  EXPECT_EQ(request.bytes, 100U);
  EXPECT_EQ(request.flags, 0U);
  EXPECT_EQ(request.freed_by, nullptr);
}

TEST(AllocationAttributesTest, NoRetryAndLoggedBecomeFlags) {
  AllocationAttributes attributes;
  attributes.retry_on_failure = false;
  EXPECT_EQ(ToRequest(1, attributes).flags, kNoRetry);
  attributes.allocation_will_be_logged = true;
  EXPECT_EQ(ToRequest(1, attributes).flags, kNoRetry | kWillBeLogged);
}

// Records the request of each attempt.
class AttemptRecorder final : public Decorator {
 public:
  using Decorator::Decorator;
  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override {
    freed_before.push_back(request.freed_before);
    saw_function |= request.freed_by != nullptr;
    return Decorator::TryAllocate(request, failure);
  }
  const char* name() const override { return "recorder"; }

  std::vector<std::uint64_t> freed_before;
  bool saw_function = false;
};

class FreedByTest : public ::testing::Test {
 protected:
  // Records the request that the ladder passes on.
  class Source final : public Reclaimer::Source {
   public:
    std::size_t ReclaimableBytes(bool /*of_limit*/) const noexcept override {
      return 1 << 20;
    }
    std::size_t Reclaim(Stream /*stream*/,
                        std::size_t bytes) noexcept override {
      return bytes;
    }
  };

  PoolPlace place_;
  std::shared_ptr<FailingAllocator> failing_ =
      std::make_shared<FailingAllocator>(place_.pool());
  AttemptRecorder top_{failing_};
  Source source_;
  Reclaimer::Registration registration_ = Reclaimer::Register(
      place_.reclaimer(), Reclaimer::Step::kCallbacks, source_);
  std::uint64_t count_ = 0;
  const std::function<std::uint64_t()> freed_by_ = [this] { return ++count_; };
};

TEST_F(FreedByTest, IsAskedBeforeEveryAttempt) {
  failing_->Fail({1, 1});  // forces a second attempt by the ladder
  AllocationAttributes attributes;
  attributes.freed_by = &freed_by_;
  Failure failure;
  EXPECT_NE(top_.AllocateOrNull(ToRequest(1000, attributes), failure), nullptr);
  ASSERT_GE(top_.freed_before.size(), 2U);
  for (std::size_t i = 0; i < top_.freed_before.size(); ++i) {
    EXPECT_EQ(top_.freed_before[i], i + 1);
  }
  EXPECT_EQ(count_, top_.freed_before.size());
  EXPECT_FALSE(top_.saw_function);
}

TEST_F(FreedByTest, NoRetryAsksOnce) {
  failing_->Fail({1, 100});
  AllocationAttributes attributes;
  attributes.freed_by = &freed_by_;
  attributes.retry_on_failure = false;
  Failure failure;
  EXPECT_EQ(top_.AllocateOrNull(ToRequest(1000, attributes), failure), nullptr);
  EXPECT_EQ(count_, 1U);
}

TEST_F(FreedByTest, WithoutAFunctionTheRequestsOwnCountHolds) {
  Request request{1000};
  request.freed_before = 42;
  const AllocationPtr allocation = top_.Allocate(request);
  EXPECT_EQ(top_.freed_before, std::vector<std::uint64_t>{42});
}

}  // namespace
}  // namespace strata
