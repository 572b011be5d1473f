#include <glog/logging.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <string>

#include "strata/base/size.h"
#include "strata/strategy/registry.h"
#include "strata/tests/testing/layers/pool_place.h"
#include "strata/tests/testing/models/facade_model.h"
#include "strata/tests/testing/models/stress_settings.h"

namespace strata {
namespace {

constexpr std::uint64_t kFaultOperations = 10000;
constexpr std::uint64_t kOperationsOfRules = 500;
// Enough to fill small devices with most seeds.
constexpr std::uint64_t kReplayOperations = 200;
constexpr int kFaultDevices = 2;

class StressFaultsTest : public ::testing::TestWithParam<std::string> {
 protected:
  // Suppresses the log: it would contain thousands of failed device calls.
  void SetUp() override { FLAGS_minloglevel = google::GLOG_FATAL; }
  void TearDown() override { FLAGS_minloglevel = google::GLOG_INFO; }

  static FacadeModelOptions ModelOptions() {
    FacadeModelOptions options;
    options.facade = GetParam();
    options.seed = StressSeed();
    options.has_faults = true;
    return options;
  }

  // Counts the calls whose failure loses an event: the caller cannot know
  // whether the device destroyed it. Memory is offered again.
  void CountLost(FacadeModel& model) {
    for (int i = 0; i < kFaultDevices; ++i) {
      model.platform().sim_device(i).SetCallObserver(
          [this](const CallRecord& call) {
            if (call.status == Status::kSuccess) return;
            ++failed_calls_;
            if (call.call == DeviceCall::kEventDestroy) ++lost_events_;
          });
    }
  }

  static void AddFault(FacadeModel& model, const FaultRule& rule) {
    for (int i = 0; i < kFaultDevices; ++i) {
      model.platform().sim_device(i).AddFault(rule);
    }
  }
  static void ClearFaults(FacadeModel& model) {
    for (int i = 0; i < kFaultDevices; ++i) {
      model.platform().sim_device(i).ClearFaults();
    }
  }
  static std::uint64_t Calls(FacadeModel& model, DeviceCall call) {
    std::uint64_t calls = 0;
    for (int i = 0; i < kFaultDevices; ++i) {
      calls += model.platform().sim_device(i).CallCount(call);
    }
    return calls;
  }

  std::uint64_t lost_events_ = 0;
  std::uint64_t failed_calls_ = 0;
};

TEST_P(StressFaultsTest, RandomFaultsLoseNothing) {
  const std::uint64_t operations = StressOperations(kFaultOperations);
  constexpr std::array kCalls = {
      DeviceCall::kMemAlloc,        DeviceCall::kMemGetInfo,
      DeviceCall::kEventCreate,     DeviceCall::kEventRecord,
      DeviceCall::kEventQuery,      DeviceCall::kEventSynchronize,
      DeviceCall::kStreamWaitEvent, DeviceCall::kStreamSynchronize,
      DeviceCall::kStreamQuery,     DeviceCall::kMallocHost,
      DeviceCall::kMallocManaged,   DeviceCall::kMemsetAsync,
  };
  constexpr std::array kStatuses = {
      Status::kSuccess,  // the call's own status
      Status::kMemoryAllocation,
      Status::kUnknown,
  };
  FacadeModel model(ModelOptions());
  CountLost(model);
  for (std::uint64_t i = 0; i < operations && !HasFailure(); ++i) {
    if (i % kOperationsOfRules == 0) {
      ClearFaults(model);
      // Every fourth section runs without faults.
      const std::uint64_t stretch = i / kOperationsOfRules;
      for (const DeviceCall call : kCalls) {
        FaultRule rule;
        rule.call = call;
        rule.probability = stretch % 2 == 0 ? 0.02 : 0.3;
        rule.status = kStatuses[stretch % kStatuses.size()];
        if (stretch % 4 != 3) AddFault(model, rule);
      }
    }
    model.Step();
  }
  EXPECT_GT(failed_calls_, 0U);
  ClearFaults(model);
  model.FreeEverything();
  model.ExpectUsable();
  model.FreeEverything();
  model.Finish(lost_events_);
}

TEST_P(StressFaultsTest, FailureOfAnyOneCallIsSurvived) {
  StressOperations(kReplayOperations);  // prints the seed
  FacadeModelOptions options = ModelOptions();
  options.device_memory_bytes = Mebibytes(32);
  std::array<std::uint64_t, kDeviceCallCount> calls{};
  {
    FacadeModel clean(options);
    for (std::size_t i = 0; i < calls.size(); ++i) {
      calls[i] = Calls(clean, static_cast<DeviceCall>(i));
    }
    for (std::uint64_t i = 0; i < kReplayOperations; ++i) clean.Step();
    for (std::size_t i = 0; i < calls.size(); ++i) {
      calls[i] = Calls(clean, static_cast<DeviceCall>(i)) - calls[i];
    }
    clean.FreeEverything();
    clean.Finish();
  }
  EXPECT_GT(calls[static_cast<std::size_t>(DeviceCall::kMemAlloc)], 0U);
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const auto call = static_cast<DeviceCall>(i);
    // Calls of the model itself.
    if (call == DeviceCall::kStreamCreate ||
        call == DeviceCall::kStreamDestroy) {
      continue;
    }
    for (std::uint64_t nth = 1; nth <= calls[i] && !HasFailure(); ++nth) {
      SCOPED_TRACE(std::string(DeviceCallName(call)) + " fails at call " +
                   std::to_string(nth));
      lost_events_ = 0;
      FacadeModel model(options);
      CountLost(model);
      AddFault(model, FailNth(call, nth));
      for (std::uint64_t step = 0; step < kReplayOperations; ++step) {
        model.Step();
      }
      ClearFaults(model);
      model.FreeEverything();
      model.ExpectUsable();
      model.FreeEverything();
      model.Finish(lost_events_);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Settings, StressFaultsTest,
    ::testing::Values("allocator_strategy=auto_growth",
                      "allocator_strategy=auto_growth free_idle_chunk",
                      "allocator_strategy=auto_growth gpu_memory_limit_mb=24 "
                      "alloc_fill_value=90",
                      "allocator_strategy=direct"),
    [](const auto& setting) { return NameOf(setting.param); });

}  // namespace
}  // namespace strata
