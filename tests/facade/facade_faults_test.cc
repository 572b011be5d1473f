// Each device call of a session fails once. The session succeeds or ends in
// clean errors, and nothing leaks.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "strata/platform/calls/device_call.h"
#include "strata/platform/sim/device/sim_device.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/tests/facade/fault_session.h"

namespace strata {
namespace {

// Calls that release something. When one fails, the device keeps the object,
// and the facade cannot change that.
bool GivesBack(DeviceCall call) {
  return call == DeviceCall::kMemFree || call == DeviceCall::kFreeHost ||
         call == DeviceCall::kEventDestroy ||
         call == DeviceCall::kStreamDestroy || call == DeviceCall::kPoolDestroy;
}

std::shared_ptr<SimPlatform> NewPlatform() {
  PlatformOptions sim;
  sim.sim_memory_bytes = Mebibytes(64);
  return std::make_shared<SimPlatform>(sim);
}

class FacadeFaultsTest : public testing::TestWithParam<const char*> {
 protected:
  using CallCounts = std::vector<std::uint64_t>;

  // Runs a session in which `fault` happens, if it is not null.
  CallCounts RunSession(const FaultRule* fault) {
    auto owner = NewPlatform();
    SimDevice& device = owner->sim_device(0);
    const std::weak_ptr<SimPlatform> platform = owner;
    FaultSession session(std::move(owner), GetParam());
    if (fault != nullptr) device.AddFault(*fault);
    session.Run();
    CallCounts counts;
    for (std::size_t i = 0; i < kDeviceCallCount; ++i) {
      counts.push_back(device.CallCount(static_cast<DeviceCall>(i)));
    }
    session.Finish();
    device.ClearFaults();
    session.End();
    if (fault == nullptr || !GivesBack(fault->call)) {
      EXPECT_EQ(platform.lock()->LeakReport(), "");
    }
    return counts;
  }
};

TEST_P(FacadeFaultsTest, ASessionWithoutFaultsIsClean) { RunSession(nullptr); }

TEST_P(FacadeFaultsTest, EveryCallMayFailOnce) {
  const CallCounts counts = RunSession(nullptr);
  int sessions = 0;
  for (std::size_t i = 0; i < kDeviceCallCount; ++i) {
    FaultRule rule;
    rule.call = static_cast<DeviceCall>(i);
    if (rule.call == DeviceCall::kStreamCreate)
      continue;  // only the test itself makes this call
    for (rule.nth = 1; rule.nth <= counts[i]; ++rule.nth) {
      SCOPED_TRACE(std::string(DeviceCallName(rule.call)) + " number " +
                   std::to_string(rule.nth));
      RunSession(&rule);
      ++sessions;
    }
  }
  EXPECT_GT(sessions, 10);
}

INSTANTIATE_TEST_SUITE_P(
    Options, FacadeFaultsTest,
    testing::Values("", "allocator_strategy=auto_growth",
                    "allocator_strategy=direct",
                    "allocator_strategy=cuda_malloc_async",
                    "alloc_fill_value=1,sync_after_alloc",
                    "gpu_memory_limit_mb=60,strata_check_streams",
                    "free_idle_chunk,auto_growth_chunk_rule=exact",
                    "free_when_no_cache_hit,strata_exact_peak",
                    "strata_guard,strata_guard_quarantine=30MiB"));

}  // namespace
}  // namespace strata
