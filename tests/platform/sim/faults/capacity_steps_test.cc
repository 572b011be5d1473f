#include "strata/platform/sim/faults/capacity_steps.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "strata/platform/sim/memory/frame_table.h"
#include "strata/tests/platform/sim/streams/sim_progress_fixture.h"

namespace strata::sim {
namespace {

std::string StepsError(const std::string& text) {
  try {
    ParseCapacitySteps(text);
  } catch (const std::invalid_argument& error) {
    return error.what();
  }
  return "accepted";
}

TEST(CapacityStepsTest, ReadsEveryOption) {
  const auto steps = ParseCapacitySteps(
      "mem_alloc:nth=100,take=10GiB;mem_get_info:give=7,device=1,nth=2;");
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(steps[0].call, DeviceCall::kMemAlloc);
  EXPECT_EQ(steps[0].nth, 100u);
  EXPECT_EQ(steps[0].take_bytes, std::uint64_t{10} << 30);
  EXPECT_EQ(steps[0].give_bytes, 0u);
  EXPECT_EQ(steps[0].device, -1);
  EXPECT_EQ(steps[1].call, DeviceCall::kMemGetInfo);
  EXPECT_EQ(steps[1].give_bytes, 7u);
  EXPECT_EQ(steps[1].device, 1);
}

TEST(CapacityStepsTest, SizesHaveBinaryUnits) {
  const auto size = [](const std::string& text) {
    return ParseCapacitySteps("mem_alloc:nth=1,take=" + text)[0].take_bytes;
  };
  EXPECT_EQ(size("3KiB"), 3u << 10);
  EXPECT_EQ(size("3MiB"), 3u << 20);
  EXPECT_EQ(size("2TiB"), std::uint64_t{2} << 40);
}

TEST(CapacityStepsTest, NamesThePartThatIsWrong) {
  const std::string flag = "strata_sim_capacity_steps: ";
  EXPECT_THAT(StepsError("malloc:nth=1,take=1"),
              ::testing::StartsWith(flag + "'malloc' is no device call (known: "
                                           "mem_get_info, synchronize, "));
  EXPECT_EQ(StepsError("mem_alloc:nth=0,take=1"),
            flag + "'nth=0' is not a number in range");
  EXPECT_EQ(StepsError("mem_alloc:nth=1,take=1gb"),
            flag + "'take=1gb' is not a size such as 512MiB or 10GiB");
  EXPECT_EQ(StepsError("mem_alloc:nth=1,take=99999999TiB"),
            flag + "'take=99999999TiB' is not a size such as 512MiB or 10GiB");
  EXPECT_EQ(StepsError("mem_alloc:nth=1,at=5"),
            flag + "'at=5' is no option (known: nth, take, give, device)");
  EXPECT_EQ(StepsError("mem_alloc:take=1"),
            flag + "'mem_alloc:take=1' has no nth");
  EXPECT_EQ(StepsError("mem_alloc:nth=1"),
            flag + "'mem_alloc:nth=1' has not exactly one of take and give");
  EXPECT_EQ(StepsError("mem_alloc:nth=1,take=1,give=1"),
            flag +
                "'mem_alloc:nth=1,take=1,give=1' has not exactly one of "
                "take and give");
  EXPECT_EQ(StepsError("mem_alloc:nth=1,take=1,"),
            flag + "'mem_alloc:nth=1,take=1,' ends with ','");
}

class CapacityScheduleTest : public SimProgressFixture {
 protected:
  void BuildWith(const std::string& steps) {
    PlatformOptions options = SimOptions(2, kFrames);
    options.sim_capacity_steps = steps;
    Build(options);
  }
  std::size_t FreeFrames(int ordinal = 0) {
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    EXPECT_EQ(device(ordinal).MemGetInfo(&free_bytes, &total_bytes),
              Status::kSuccess);
    EXPECT_EQ(total_bytes, kFrames * kFrameBytes);
    return free_bytes / kFrameBytes;
  }
};

TEST_F(CapacityScheduleTest, TakesAndGivesBeforeTheCall) {
  BuildWith("mem_get_info:nth=2,take=20MiB;mem_get_info:nth=4,give=4MiB");
  EXPECT_EQ(FreeFrames(), kFrames);
  EXPECT_EQ(FreeFrames(), kFrames - 10);
  EXPECT_EQ(FreeFrames(), kFrames - 10);
  EXPECT_EQ(FreeFrames(), kFrames - 8);
}

TEST_F(CapacityScheduleTest, AllocationMeetsTheSmallerDevice) {
  BuildWith("mem_alloc:nth=2,take=1TiB;mem_alloc:nth=3,give=1TiB");
  DevicePtr ptr = 0;
  EXPECT_EQ(device().MemAlloc(&ptr, kFrameBytes), Status::kSuccess);
  EXPECT_EQ(device().MemAlloc(&ptr, kFrameBytes), Status::kMemoryAllocation);
  EXPECT_EQ(device().MemAlloc(&ptr, (kFrames - 1) * kFrameBytes),
            Status::kSuccess);
}

TEST_F(CapacityScheduleTest, GivesNoMoreThanWasTaken) {
  BuildWith("mem_get_info:nth=1,take=2MiB;mem_get_info:nth=2,give=1TiB");
  EXPECT_EQ(FreeFrames(), kFrames - 1);
  EXPECT_EQ(FreeFrames(), kFrames);
}

TEST_F(CapacityScheduleTest, StepIsForItsDeviceOrForAll) {
  BuildWith("mem_get_info:nth=1,take=2MiB,device=1");
  EXPECT_EQ(FreeFrames(0), kFrames);
  EXPECT_EQ(FreeFrames(1), kFrames - 1);
  BuildWith("mem_get_info:nth=1,take=2MiB");
  EXPECT_EQ(FreeFrames(0), kFrames - 1);
  EXPECT_EQ(FreeFrames(1), kFrames - 1);
}

TEST_F(CapacityScheduleTest, DeviceThatDoesNotExistIsRefused) {
  try {
    BuildWith("mem_get_info:nth=1,take=1,device=2");
    FAIL() << "accepted";
  } catch (const std::invalid_argument& error) {
    EXPECT_STREQ(error.what(),
                 "strata_sim_capacity_steps: 'device=2' is no device (there "
                 "are 2)");
  }
}

}  // namespace
}  // namespace strata::sim
