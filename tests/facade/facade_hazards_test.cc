// Chains of a facade under the checker. Correct use of their memory is safe,
// and the checker reports calls that a program omits.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strata/facade/allocator_facade.h"
#include "strata/platform/calls/host_hand_over.h"
#include "strata/platform/check/hazard_monitor.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/strategy/registry.h"

namespace strata {
namespace {

constexpr std::size_t kBlockBytes = 1 << 20;

class FacadeHazardsTest : public testing::TestWithParam<std::string> {
 protected:
  explicit FacadeHazardsTest(const std::string& more = "") {
    Options options = Options::Parse("allocator_strategy=" + GetParam() + more);
    options.platform.sim_memory_bytes = std::uint64_t{256} << 20;
    options.platform.sim_progress = "lazy";
    options.platform.sim_check_hazards = "report";
    platform_ = std::make_shared<SimPlatform>(options.platform);
    platform_->hazard_monitor()->SetHandler(
        [this](const check::HazardReport& report) {
          reports_ += ToString(report);
        });
    facade_ = std::make_unique<AllocatorFacade>(options, platform_);
    for (Stream& stream : streams_) {
      EXPECT_EQ(device().StreamCreate(&stream, kStreamNonBlocking),
                Status::kSuccess);
    }
  }
  ~FacadeHazardsTest() override { facade_.reset(); }

  SimDevice& device() { return platform_->sim_device(0); }
  AllocationPtr Alloc(Stream stream) {
    return facade_->Alloc(DevicePlace(0), kBlockBytes, stream);
  }
  void Work(const AllocationPtr& block, Stream stream) {
    const WorkRange range{reinterpret_cast<DevicePtr>(block->data()),
                          kBlockBytes, true};
    EXPECT_EQ(platform_->work(0)->Enqueue(stream, &range, 1, 0, 0),
              Status::kSuccess);
  }
  void Order(Stream before, Stream after) {
    Event event;
    EXPECT_EQ(device().EventCreate(&event, kEventDisableTiming),
              Status::kSuccess);
    EXPECT_EQ(device().EventRecord(event, before, 0), Status::kSuccess);
    EXPECT_EQ(device().StreamWaitEvent(after, event, 0), Status::kSuccess);
    EXPECT_EQ(device().EventDestroy(event), Status::kSuccess);
  }

  std::shared_ptr<SimPlatform> platform_;
  std::unique_ptr<AllocatorFacade> facade_;
  Stream streams_[2];
  std::string reports_;
};

TEST_P(FacadeHazardsTest, BlocksThatAreMarkedAreSafe) {
  for (int i = 0; i < 50; ++i) {
    AllocationPtr block = Alloc(streams_[i % 2]);
    Work(block, streams_[i % 2]);
    if (i % 3 == 0) {
      Order(streams_[i % 2], streams_[1 - i % 2]);
      Work(block, streams_[1 - i % 2]);
      facade_->RecordStream(block, streams_[1 - i % 2]);
    }
    if (i % 7 == 0) device().Synchronize();
  }
  facade_->Release(DevicePlace(0));
  EXPECT_EQ(reports_, "");
}

TEST_P(FacadeHazardsTest, ForgottenMarkIsFound) {
  AllocationPtr block = Alloc(streams_[0]);
  Work(block, streams_[0]);
  Order(streams_[0], streams_[1]);
  Work(block, streams_[1]);  // without RecordStream
  block.reset();
  block = Alloc(streams_[0]);
  // Memory of a driver pool may be another piece: then its free is too early.
  facade_->Release(DevicePlace(0));
  const std::string missing =
      "stream " + std::to_string(streams_[1].uid) + "'s use";
  EXPECT_THAT(reports_, testing::HasSubstr(missing));
}

TEST_P(FacadeHazardsTest, ReleaseWaitsForWorkBeforeItGivesMemoryBack) {
  AllocationPtr block = Alloc(streams_[0]);
  Work(block, streams_[0]);
  block.reset();
  facade_->Release(DevicePlace(0));
  facade_.reset();
  EXPECT_EQ(reports_, "");
}

// A thread ends, and the thread that joins it frees the memory that it used.
// The checker sees no join.
TEST_P(FacadeHazardsTest, HandOverTellsOfAJoin) {
  for (const bool is_told : {false, true}) {
    HostHandOver hand_over(device());
    AllocationPtr block = Alloc(streams_[0]);
    Order(streams_[0], streams_[1]);
    std::thread([&] {
      Work(block, streams_[1]);
      EXPECT_EQ(device().StreamSynchronize(streams_[1]), Status::kSuccess);
      if (is_told) hand_over.Release();
    }).join();
    if (is_told) hand_over.Acquire();
    block.reset();
    block = Alloc(streams_[0]);
    Work(block, streams_[0]);
    block.reset();
    facade_->Release(DevicePlace(0));
    EXPECT_EQ(reports_.empty(), is_told) << reports_;
    reports_.clear();
  }
}

// A thread starts, and frees memory after its creator has seen the work
// complete.
TEST_P(FacadeHazardsTest, HandOverTellsOfAThreadsStart) {
  for (const bool is_told : {false, true}) {
    HostHandOver hand_over(device());
    AllocationPtr block = Alloc(streams_[0]);
    Order(streams_[0], streams_[1]);
    Work(block, streams_[1]);
    EXPECT_EQ(device().StreamSynchronize(streams_[1]), Status::kSuccess);
    if (is_told) hand_over.Release();
    std::thread([&] {
      if (is_told) hand_over.Acquire();
      block.reset();
      block = Alloc(streams_[0]);
      Work(block, streams_[0]);
      block.reset();
      facade_->Release(DevicePlace(0));
    }).join();
    EXPECT_EQ(reports_.empty(), is_told) << reports_;
    reports_.clear();
  }
}

class GuardedHazardsTest : public FacadeHazardsTest {
 protected:
  GuardedHazardsTest() : FacadeHazardsTest(",strata_guard") {}
};

// The frees of the second stream rely on waits of the first stream's guard.
TEST_P(GuardedHazardsTest, OneThreadFreesWhatAnotherReleases) {
  AllocationPtr freed = Alloc(streams_[0]);
  const AllocationPtr kept = Alloc(streams_[0]);
  facade_->StreamDestroyed(streams_[0]);
  EXPECT_EQ(device().StreamDestroy(streams_[0]), Status::kSuccess);
  std::thread([&] { freed.reset(); }).join();
  facade_->Release(DevicePlace(0));
  Alloc(streams_[1]).reset();
  EXPECT_EQ(reports_, "");
}

std::string NameOf(const testing::TestParamInfo<std::string>& instance) {
  return instance.param;
}

INSTANTIATE_TEST_SUITE_P(Strategies, FacadeHazardsTest,
                         testing::ValuesIn(StrategyNames()), &NameOf);
INSTANTIATE_TEST_SUITE_P(Strategies, GuardedHazardsTest,
                         testing::ValuesIn(StrategyNames()), &NameOf);

}  // namespace
}  // namespace strata
