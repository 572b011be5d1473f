// Host functions that stand in for kernels on the simulated device.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "strata/platform/check/hazard_monitor.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/tests/testing/devices/statuses.h"

namespace strata::sim {
namespace {

constexpr std::size_t kCount = 100;
constexpr std::size_t kVectorBytes = kCount * sizeof(std::uint32_t);

// ranges[1][i] = ranges[0][i] * *argument + 1
void MultiplyAdd(void* argument, void* const* ranges) {
  const auto* from = static_cast<const std::uint32_t*>(ranges[0]);
  auto* to = static_cast<std::uint32_t*>(ranges[1]);
  for (std::size_t i = 0; i < kCount; ++i) {
    to[i] = from[i] * *static_cast<std::uint32_t*>(argument) + 1;
  }
}

class SimKernelTest : public testing::Test {
 protected:
  void Build(const std::string& progress, const std::string& data = "backed") {
    PlatformOptions options;
    options.sim_memory_bytes = std::uint64_t{64} << 20;
    options.sim_progress = progress;
    options.sim_data = data;
    options.sim_check_hazards = "report";
    platform_ = std::make_shared<SimPlatform>(options);
    platform_->hazard_monitor()->SetHandler(
        [this](const check::HazardReport& report) {
          reports_ += ToString(report);
        });
    EXPECT_EQ(device().StreamCreate(&stream_, kStreamNonBlocking), kOk);
    EXPECT_EQ(device().StreamCreate(&other_, kStreamNonBlocking), kOk);
    EXPECT_EQ(device().MemAlloc(&from_, kVectorBytes), kOk);
    EXPECT_EQ(device().MemAlloc(&to_, kVectorBytes), kOk);
  }

  SimDevice& device() { return platform_->sim_device(0); }
  DeviceWork& work() { return *platform_->work(0); }
  Status Launch(Stream stream) {
    const WorkRange ranges[] = {{from_, kVectorBytes, false},
                                {to_, kVectorBytes, true}};
    return work().Launch(stream, ranges, 2, &MultiplyAdd, &factor_);
  }
  std::uint32_t Last(DevicePtr ptr) {
    return static_cast<std::uint32_t*>(
        device().HostView(ptr, kVectorBytes))[99];
  }
  void Fill(Stream stream) {
    EXPECT_EQ(device().MemsetAsync(from_, 1, kVectorBytes, stream), kOk);
  }

  std::shared_ptr<SimPlatform> platform_;
  Stream stream_;
  Stream other_;
  DevicePtr from_ = 0;
  DevicePtr to_ = 0;
  std::uint32_t factor_ = 3;
  std::string reports_;
};

constexpr std::uint32_t kOnes = 0x01010101;

TEST_F(SimKernelTest, ComputesAtItsTurnInTheStream) {
  Build("lazy");
  Fill(stream_);
  EXPECT_EQ(Launch(stream_), kOk);
  // Nothing has run yet: the argument is read when the work runs.
  EXPECT_EQ(device().PendingCount(), 2U);
  factor_ = 5;
  EXPECT_EQ(device().StreamSynchronize(stream_), kOk);
  EXPECT_EQ(Last(to_), kOnes * 5 + 1);
  EXPECT_EQ(reports_, "");
}

TEST_F(SimKernelTest, EachLaunchOfAGraphComputesAgain) {
  for (const char* progress : {"inline", "lazy", "seeded", "timed"}) {
    SCOPED_TRACE(progress);
    Build(progress);
    Fill(stream_);
    EXPECT_EQ(device().StreamSynchronize(stream_), kOk);
    ASSERT_EQ(device().StreamBeginCapture(stream_, CaptureMode::kThreadLocal),
              kOk);
    EXPECT_EQ(Launch(stream_), kOk);
    Graph graph;
    ASSERT_EQ(device().StreamEndCapture(stream_, &graph), kOk);
    GraphExec exec;
    ASSERT_EQ(device().GraphInstantiate(&exec, graph, 0), kOk);
    for (const std::uint32_t factor : {3U, 7U}) {
      factor_ = factor;
      EXPECT_EQ(device().GraphLaunch(exec, stream_), kOk);
      EXPECT_EQ(device().StreamSynchronize(stream_), kOk);
      EXPECT_EQ(Last(to_), kOnes * factor + 1);
    }
    EXPECT_EQ(device().GraphExecDestroy(exec), kOk);
    EXPECT_EQ(device().GraphDestroy(graph), kOk);
    EXPECT_EQ(reports_, "");
  }
}

// Pool memory that is freed behind the function in the stream, before the
// function has run.
TEST_F(SimKernelTest, ComputesBeforeTheFreeThatFollowsIt) {
  Build("lazy");
  Fill(stream_);
  const DevicePtr result = to_;
  MemPool pool;
  ASSERT_EQ(device().DefaultMemPool(&pool), kOk);
  DevicePtr between = 0;
  ASSERT_EQ(device().MallocFromPoolAsync(&between, kVectorBytes, pool, stream_),
            kOk);
  to_ = between;
  EXPECT_EQ(Launch(stream_), kOk);
  from_ = between;
  to_ = result;
  EXPECT_EQ(Launch(stream_), kOk);
  EXPECT_EQ(device().FreeAsync(between, stream_), kOk);
  EXPECT_EQ(device().PendingCount(), 5U);
  EXPECT_EQ(device().StreamSynchronize(stream_), kOk);
  EXPECT_EQ(Last(to_), (kOnes * 3 + 1) * 3 + 1);
  EXPECT_EQ(reports_, "");
}

TEST_F(SimKernelTest, TheCheckerKnowsWhatItUses) {
  Build("lazy");
  Fill(stream_);
  EXPECT_EQ(Launch(stream_), kOk);
  EXPECT_EQ(platform_->hazard_count(), 0U);
  EXPECT_EQ(device().MemFree(to_), kOk);  // the work may still be pending
  EXPECT_EQ(platform_->hazard_count(), 1U);
  EXPECT_THAT(reports_, testing::HasSubstr("use"));
}

TEST_F(SimKernelTest, IsNotCalledWithoutBytes) {
  Build("inline", "phantom");
  bool called = false;
  const WorkRange range{to_, kVectorBytes, true};
  const HostKernel note = [](void* argument, void* const*) {
    *static_cast<bool*>(argument) = true;
  };
  EXPECT_EQ(work().Launch(stream_, &range, 1, note, &called), kOk);
  EXPECT_FALSE(called);
  // Without ranges, no memory can be missing.
  EXPECT_EQ(work().Launch(stream_, nullptr, 0, note, &called), kOk);
  EXPECT_TRUE(called);
}

TEST_F(SimKernelTest, MemoryThatIsGoneIsAnIllegalAddressAndNoCall) {
  Build("lazy");
  const DevicePtr gone = to_;
  EXPECT_EQ(Launch(stream_), kOk);
  EXPECT_EQ(device().StreamSynchronize(stream_), kOk);
  EXPECT_EQ(device().MemFree(gone), kOk);
  factor_ = 0;
  EXPECT_EQ(Launch(stream_), kOk);
  EXPECT_EQ(device().StreamSynchronize(stream_), Status::kIllegalAddress);
  EXPECT_EQ(Launch(stream_), Status::kIllegalAddress);
  EXPECT_THAT(reports_, testing::HasSubstr("free"));
}

TEST_F(SimKernelTest, MakesNoDeviceCall) {
  Build("inline");
  struct Argument {
    SimDevice* device;
    Status status;
  } argument{&device(), kOk};
  const HostKernel call = [](void* pointer, void* const*) {
    auto* inside = static_cast<Argument*>(pointer);
    inside->status = inside->device->Synchronize();
  };
  EXPECT_EQ(work().Launch(stream_, nullptr, 0, call, &argument), kOk);
  EXPECT_EQ(argument.status, Status::kNotPermitted);
}

TEST_F(SimKernelTest, RefusesWhatCannotBeLaunched) {
  Build("inline");
  const std::vector<WorkRange> many(kMaxWorkRanges + 1, {to_, 8, true});
  const WorkRange empty{to_, 0, true};
  const WorkRange nowhere{0, 8, true};
  const auto launch = [&](const WorkRange* ranges, std::size_t count,
                          HostKernel kernel) {
    return work().Launch(stream_, ranges, count, kernel, &factor_);
  };
  EXPECT_EQ(launch(many.data(), many.size(), &MultiplyAdd),
            Status::kInvalidValue);
  EXPECT_EQ(launch(&empty, 1, &MultiplyAdd), Status::kInvalidValue);
  EXPECT_EQ(launch(&nowhere, 1, &MultiplyAdd), Status::kInvalidValue);
  EXPECT_EQ(launch(nullptr, 1, &MultiplyAdd), Status::kInvalidValue);
  EXPECT_EQ(launch(many.data(), 1, nullptr), Status::kInvalidValue);
  EXPECT_EQ(Launch(Stream()), Status::kInvalidResourceHandle);
}

// cuda_semantics.md C16: the legacy stream during a capture that it would join.
TEST_F(SimKernelTest, IsRefusedAsALaunchWhileOthersCapture) {
  Build("inline");
  Stream blocking;
  ASSERT_EQ(device().StreamCreate(&blocking, kStreamDefault), kOk);
  ASSERT_EQ(device().StreamBeginCapture(blocking, CaptureMode::kGlobal), kOk);
  EXPECT_EQ(Launch(device().LegacyStream()), Status::kStreamCaptureImplicit);
  Graph graph;
  EXPECT_EQ(device().StreamEndCapture(blocking, &graph),
            Status::kStreamCaptureInvalidated);
}

}  // namespace
}  // namespace strata::sim
