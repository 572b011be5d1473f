#include "strata/tensor/typed_allocation.h"

#include <gtest/gtest.h>

#include <complex>
#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "strata/allocation/system/host_allocator.h"
#include "strata/tests/testing/layers/counting_allocator.h"
#include "strata/tests/testing/layers/failing_allocator.h"
#include "strata/tests/testing/layers/handle_allocator.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

// Records the calls of its special members.
class Noisy {
 public:
  Noisy() {
    if (throw_at == static_cast<int>(events.size())) {
      throw std::runtime_error("enough");
    }
    number_ = static_cast<int>(events.size()) + 1;
    events.push_back(number_);
  }
  Noisy(const Noisy&) = delete;
  Noisy& operator=(const Noisy&) = delete;
  ~Noisy() { events.push_back(-number_); }

  static inline std::vector<int> events;
  static inline int throw_at = -1;

 private:
  int number_ = 0;
};

struct alignas(512) Wide {
  std::byte bytes[512];
};

struct WithDefault {
  int value = 7;
};

// tf_bfc §2: TypedAllocator.
class TypedAllocationTest : public ::testing::Test {
 protected:
  TypedAllocationTest() {
    Noisy::events.clear();
    Noisy::throw_at = -1;
  }

  PoolPlace place_;
  CountingAllocator host_{std::make_shared<HostAllocator>()};
  CountingAllocator device_{place_.pool()};
  Failure failure_;
};

TEST_F(TypedAllocationTest, AsksForTheBytesOfAllObjects) {
  const auto array = Allocate<double>(device_, 100, failure_);
  ASSERT_TRUE(array);
  EXPECT_EQ(device_.last_bytes(), 800U);
  EXPECT_EQ(array.size(), 100U);
  EXPECT_EQ(array.data(), array.allocation()->data());
}

TEST_F(TypedAllocationTest, ASizeThatOverflowsIsAFailure) {
  constexpr std::size_t kMost = std::numeric_limits<std::size_t>::max();
  for (const std::size_t n : {kMost / 8 + 1, kMost}) {
    const auto array = Allocate<double>(host_, n, failure_);
    EXPECT_FALSE(array);
    EXPECT_EQ(array.data(), nullptr);
    EXPECT_EQ(array.size(), 0U);
    EXPECT_EQ(failure_.reason, Failure::Reason::kTooLarge);
    EXPECT_EQ(failure_.requested_bytes, kMost);
    EXPECT_EQ(failure_.ToString(),
              "typed: cannot allocate 16.0 EiB on host: no device can address "
              "as much (or more: the objects have more bytes than can be "
              "counted)");
  }
  EXPECT_EQ(host_.allocations(), 0U);
}

TEST_F(TypedAllocationTest, IsAlignedToACacheLineAtLeast) {
  for (int i = 0; i < 20; ++i) {
    const auto bytes = Allocate<char>(host_, 1);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(bytes.data()) % 64, 0U);
    const auto wide = Allocate<Wide>(host_, 2);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(wide.data()) % 512, 0U);
  }
}

TEST_F(TypedAllocationTest, ConstructsInOrderAndDestroysLastFirst) {
  { const auto array = Allocate<Noisy>(host_, 3); }
  EXPECT_EQ(Noisy::events, (std::vector<int>{1, 2, 3, -3, -2, -1}));
  EXPECT_EQ(host_.live(), 0U);
}

TEST_F(TypedAllocationTest, ValueInitialises) {
  const auto defaults = Allocate<WithDefault>(host_, 4);
  for (const WithDefault& one : defaults.span()) EXPECT_EQ(one.value, 7);
  const auto strings = Allocate<std::string>(host_, 2);
  strings.span()[1] = "long enough that it has memory of its own, elsewhere";
  EXPECT_TRUE(strings.span()[0].empty());
}

TEST_F(TypedAllocationTest, AConstructorThatThrowsLeavesNothing) {
  Noisy::throw_at = 2;
  EXPECT_THROW(Allocate<Noisy>(host_, 5), std::runtime_error);
  EXPECT_EQ(host_.live(), 0U);
  EXPECT_EQ(host_.allocations(), 1U);
  EXPECT_EQ(Noisy::events.size(), 4U);  // two constructed, two destroyed
}

TEST_F(TypedAllocationTest, NumbersAreNotConstructed) {
  static_assert(!kNeedsConstruction<float>);
  static_assert(!kNeedsConstruction<std::complex<float>>);
  static_assert(kNeedsConstruction<WithDefault>);
  // Phantom memory: the host would fault if it wrote there.
  EXPECT_TRUE(Allocate<std::complex<float>>(device_, 10));
}

TEST_F(TypedAllocationTest, ObjectsNeedMemoryOfTheHost) {
  EXPECT_FALSE(Allocate<std::string>(device_, 1, failure_));
  EXPECT_EQ(failure_.reason, Failure::Reason::kBadRequest);
  EXPECT_EQ(device_.allocations(), 0U);
}

TEST_F(TypedAllocationTest, AHandleGetsNoObjects) {
  HandleAllocator handles;
  {
    const auto array = Allocate<Noisy>(handles, 2, failure_);
    EXPECT_TRUE(array);
    EXPECT_EQ(handles.live(), 1);
  }
  EXPECT_TRUE(Noisy::events.empty());
  EXPECT_EQ(handles.live(), 0);
}

// Handles have no alignment, whatever alignment the objects need.
TEST_F(TypedAllocationTest, AHandleIsNotAligned) {
  HandleAllocator handles;
  EXPECT_EQ(AlignmentToAsk(handles, 4096), 0U);
  EXPECT_TRUE(Allocate<Wide>(handles, 1, failure_));
  EXPECT_EQ(AlignmentToAsk(host_, 4096), 4096U);
  EXPECT_EQ(AlignmentToAsk(host_, host_.natural_alignment()), 0U);
}

TEST_F(TypedAllocationTest, NoObjectsAreNoFailure) {
  const auto none = Allocate<Noisy>(host_, 0, failure_);
  EXPECT_TRUE(none);
  EXPECT_EQ(none.data(), nullptr);
  EXPECT_TRUE(none.span().empty());
  EXPECT_EQ(host_.allocations(), 0U);
}

TEST_F(TypedAllocationTest, AFailureIsThatOfTheAllocator) {
  FailingAllocator failing(place_.pool());
  failing.Fail({1, 1, Failure::Reason::kNoGrowth});
  EXPECT_FALSE(Allocate<float>(failing, 10, failure_));
  EXPECT_EQ(failure_.reason, Failure::Reason::kNoGrowth);
  EXPECT_STREQ(failure_.layer, "failing");
}

TEST_F(TypedAllocationTest, AttributesGoWithTheRequest) {
  AllocationAttributes attributes;
  attributes.retry_on_failure = false;
  const auto array = Allocate<float>(device_, 10, failure_, attributes);
  EXPECT_EQ(device_.last_flags(), kNoRetry);
}

TEST_F(TypedAllocationTest, MovesItsObjects) {
  auto first = Allocate<Noisy>(host_, 1);
  auto second = std::move(first);
  EXPECT_FALSE(first);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(first.size(), 0U);
  second = Allocate<Noisy>(host_, 1);
  EXPECT_EQ(Noisy::events, (std::vector<int>{1, 2, -1}));
  second = TypedAllocation<Noisy>();
  EXPECT_EQ(host_.live(), 0U);
}

}  // namespace
}  // namespace strata
