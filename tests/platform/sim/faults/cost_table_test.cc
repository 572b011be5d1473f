#include "strata/platform/sim/faults/cost_table.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

namespace strata::sim {
namespace {

TEST(CostTableTest, EveryRowHasASourceAndACost) {
  int rows = 0;
  for (std::size_t i = 0; i < kDeviceCallCount; ++i) {
    const CallCost* cost = FindCallCost(static_cast<DeviceCall>(i));
    if (cost == nullptr) continue;
    ++rows;
    EXPECT_EQ(cost->call, static_cast<DeviceCall>(i));
    EXPECT_GT(cost->fixed_ns, 0u);
    EXPECT_FALSE(std::string(cost->source).empty());
    EXPECT_EQ(cost->unit_bytes == 0, cost->per_unit_ns == 0);
  }
  EXPECT_GT(rows, 20);
}

TEST(CostTableTest, SizeIsChargedByUnitsBegunUpToTheCap) {
  const std::uint64_t unit = std::uint64_t{2} << 20;
  EXPECT_EQ(CallCostNs(DeviceCall::kMallocFromPoolAsync, 0), 500u);
  EXPECT_EQ(CallCostNs(DeviceCall::kMallocFromPoolAsync, 1), 4000u);
  EXPECT_EQ(CallCostNs(DeviceCall::kMallocFromPoolAsync, unit), 4000u);
  EXPECT_EQ(CallCostNs(DeviceCall::kMallocFromPoolAsync, unit + 1), 7500u);
  EXPECT_EQ(CallCostNs(DeviceCall::kMallocFromPoolAsync, SIZE_MAX), 135000u);
}

TEST(CostTableTest, OtherCallsCostTheSameWhateverTheSize) {
  EXPECT_EQ(CallCostNs(DeviceCall::kEventRecord, 0), 420u);
  EXPECT_EQ(CallCostNs(DeviceCall::kMemcpyAsync, 1),
            CallCostNs(DeviceCall::kMemcpyAsync, SIZE_MAX));
}

TEST(CostTableTest, WorkOnADeviceTakesLongerTheMoreItMoves) {
  for (const OperationKind kind :
       {OperationKind::kCopyOnDevice, OperationKind::kCopyWithHost,
        OperationKind::kFill}) {
    EXPECT_GT(OperationCostNs(kind, 0), 0u);
    EXPECT_GT(OperationCostNs(kind, std::size_t{1} << 30),
              10 * OperationCostNs(kind, 0));
  }
  EXPECT_GT(OperationCostNs(OperationKind::kCopyWithHost, 1 << 20),
            OperationCostNs(OperationKind::kCopyOnDevice, 1 << 20));
}

}  // namespace
}  // namespace strata::sim
