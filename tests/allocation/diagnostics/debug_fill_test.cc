#include "strata/allocation/diagnostics/debug_fill.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <vector>

#include "strata/allocation/decorators/registry.h"
#include "strata/allocation/error.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {
namespace {

using ::testing::ElementsAre;

class DebugFillTest : public ::testing::Test {
 protected:
  // A chain of three layers over the pool.
  static std::shared_ptr<Allocator> Chain(const PoolPlace& place) {
    ChainContext context;
    context.platform = place.platform();
    return Decorate(place.pool(), DecoratorOptions(), context);
  }
  static std::vector<CallRecord> CallsOfAllocation(const PoolPlace& place,
                                                   Allocator& chain) {
    std::vector<CallRecord> calls;
    place.device().SetCallObserver(
        [&calls](const CallRecord& call) { calls.push_back(call); });
    const AllocationPtr allocation = chain.Allocate(1000);
    place.device().SetCallObserver(nullptr);
    return calls;
  }
  static std::vector<DeviceCall> Kinds(const std::vector<CallRecord>& calls) {
    std::vector<DeviceCall> kinds;
    for (const CallRecord& call : calls) kinds.push_back(call.call);
    return kinds;
  }
};

// paddle.md §5 B10: every layer filled and synchronised again.
TEST_F(DebugFillTest, FillsADeviceAllocationOnceInStreamOrder) {
  PoolPlace place;
  const auto chain = Chain(place);
  const DebugFill fill(&place.device(), static_cast<unsigned char>(0xAB),
                       false);
  chain->set_debug_fill(&fill);
  const std::vector<CallRecord> calls = CallsOfAllocation(place, *chain);
  EXPECT_THAT(Kinds(calls),
              ElementsAre(DeviceCall::kMemAlloc, DeviceCall::kMemsetAsync));
  EXPECT_EQ(calls[1].ptr, calls[0].ptr);
  EXPECT_EQ(calls[1].bytes, 1000U);
  EXPECT_EQ(calls[1].value, 0xABU);
}

TEST_F(DebugFillTest, SynchronisesAfterTheFill) {
  PoolPlace place;
  const auto chain = Chain(place);
  const DebugFill both(&place.device(), static_cast<unsigned char>(0), true);
  chain->set_debug_fill(&both);
  EXPECT_THAT(Kinds(CallsOfAllocation(place, *chain)),
              ElementsAre(DeviceCall::kMemAlloc, DeviceCall::kMemsetAsync,
                          DeviceCall::kSynchronize));
  const DebugFill sync(&place.device(), std::nullopt, true);
  chain->set_debug_fill(&sync);
  EXPECT_THAT(Kinds(CallsOfAllocation(place, *chain)),
              ElementsAre(DeviceCall::kMemAlloc, DeviceCall::kSynchronize));
  chain->set_debug_fill(nullptr);
  EXPECT_THAT(Kinds(CallsOfAllocation(place, *chain)),
              ElementsAre(DeviceCall::kMemAlloc));
}

TEST_F(DebugFillTest, UsesTheStreamOfTheAllocation) {
  PoolPlace place;
  const Stream stream = place.NewStream();
  const DebugFill fill(&place.device(), static_cast<unsigned char>(1), false);
  const AllocationPtr allocation = place.pool()->Allocate(1000);
  std::uint64_t uid = 0;
  place.device().SetCallObserver(
      [&uid](const CallRecord& call) { uid = call.stream_uid; });
  EXPECT_EQ(fill.Apply(*allocation, stream), Status::kSuccess);
  place.device().SetCallObserver(nullptr);
  EXPECT_EQ(uid, stream.uid);
}

TEST_F(DebugFillTest, AFailedFillFreesTheAllocation) {
  for (const DeviceCall call :
       {DeviceCall::kMemsetAsync, DeviceCall::kSynchronize}) {
    PoolPlace place;
    const auto chain = Chain(place);
    const DebugFill fill(&place.device(), static_cast<unsigned char>(0), true);
    chain->set_debug_fill(&fill);
    FaultRule rule = FailNth(call, 1);
    rule.status = Status::kIllegalAddress;
    place.device().AddFault(rule);
    try {
      chain->Allocate(1000);
      ADD_FAILURE() << "the fill failed";
    } catch (const DeviceError& error) {
      EXPECT_EQ(error.status(), Status::kIllegalAddress);
      EXPECT_STREQ(error.failure().detail, "debug fill");
      EXPECT_EQ(error.failure().requested_bytes, 1000U);
    }
    EXPECT_EQ(chain->stats().live_allocations(), 0U);
    EXPECT_EQ(place.device().Leaks().allocations, 0U);
    EXPECT_NE(chain->Allocate(1000), nullptr);
  }
}

TEST_F(DebugFillTest, ZeroBytesAreNotFilled) {
  PoolPlace place;
  const auto chain = Chain(place);
  const DebugFill fill(&place.device(), static_cast<unsigned char>(0), true);
  chain->set_debug_fill(&fill);
  const AllocationPtr zero = chain->Allocate(0);
  EXPECT_EQ(place.DeviceCalls(), 0U);
}

TEST_F(DebugFillTest, FillsMemoryTheHostCanReach) {
  for (const PlaceKind kind :
       {PlaceKind::kHost, PlaceKind::kPinned, PlaceKind::kManaged}) {
    PoolPlaceOptions options;
    options.kind = kind;
    PoolPlace place(options);
    const auto chain = Chain(place);
    const DebugFill fill(kind == PlaceKind::kHost ? nullptr : &place.device(),
                         static_cast<unsigned char>(0xCD), true);
    chain->set_debug_fill(&fill);
    const AllocationPtr allocation = chain->Allocate(1000);
    const auto* bytes = static_cast<const unsigned char*>(allocation->data());
    EXPECT_EQ(bytes[0], 0xCD);
    EXPECT_EQ(bytes[999], 0xCD);
  }
}

}  // namespace
}  // namespace strata
