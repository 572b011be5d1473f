// Programs on several streams, under the checker. They repeat their steps,
// sometimes leave them, and lend memory to each other. A stream must get only
// memory that is free on it.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/base/size.h"
#include "strata/facade/allocator_facade.h"
#include "strata/platform/check/hazard_monitor.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/tests/testing/models/stress_settings.h"

namespace strata {
namespace {

constexpr std::uint64_t kStepOperations = 400'000;
constexpr std::uint64_t kOperationsOfAProgram = 200'000;

// One operation of a step in its stream.
struct StepEvent {
  enum class Kind : std::uint8_t { kAllocate, kUse, kLend, kFree };
  Kind kind;
  std::size_t slot;
  std::size_t bytes;
};

class RepeatingProgram {
 public:
  RepeatingProgram(const std::string& options, std::uint64_t seed)
      : random_(seed) {
    Options parsed = Options::Parse(options);
    parsed.platform.sim_memory_bytes = Mebibytes(96 + random_() % 64);
    parsed.platform.sim_progress = "lazy";
    parsed.platform.sim_check_hazards = "report";
    platform_ = std::make_shared<SimPlatform>(parsed.platform);
    platform_->hazard_monitor()->SetHandler(
        [](const check::HazardReport& report) {
          ADD_FAILURE() << ToString(report);
        });
    facade_ = std::make_unique<AllocatorFacade>(parsed, platform_);
    for (Lane& lane : lanes_) {
      EXPECT_EQ(device().StreamCreate(&lane.stream, kStreamNonBlocking),
                Status::kSuccess);
      lane.step = MakeStep();
    }
  }

  // Runs several steps of one stream. The last one may be disturbed. Returns
  // the number of operations.
  std::uint64_t Run() {
    Lane& lane = lanes_[random_() % std::size(lanes_)];
    const std::uint64_t steps = 1 + random_() % 40;
    const bool is_disturbed = random_() % 2 == 0;
    for (std::uint64_t i = 0; i < steps; ++i) {
      const std::size_t at = is_disturbed && i + 1 == steps
                                 ? random_() % lane.step.size()
                                 : lane.step.size();
      for (std::size_t k = 0; k < lane.step.size(); ++k) {
        if (k == at) Disturb(lane);
        Play(lane, lane.step[k]);
      }
    }
    if (random_() % 64 == 0) lane.step = MakeStep();
    return steps * lane.step.size();
  }

  void Finish() {
    for (Lane& lane : lanes_) lane.live.clear();
    EXPECT_EQ(device().Synchronize(), Status::kSuccess);
    facade_->Release(DevicePlace(0));
    const Stats stats = facade_->GetStats(DevicePlace(0));
    EXPECT_EQ(stats.in_use_bytes, 0U);
    EXPECT_EQ(stats.reserved_bytes, 0U);
  }

 private:
  struct Lane {
    Stream stream;
    std::vector<StepEvent> step;
    std::map<std::size_t, AllocationPtr> live;
  };
  using Kind = StepEvent::Kind;

  SimDevice& device() { return platform_->sim_device(0); }
  Stats StrategyOf(const Lane& lane) {
    return CarvingLayer(facade_->GetAllocator(DevicePlace(0), lane.stream))
        .stats();
  }

  // A step of blocks with random lifetimes. All are freed at its end.
  std::vector<StepEvent> MakeStep() {
    std::vector<StepEvent> step;
    std::vector<std::size_t> live;
    const std::size_t slots = 10 + random_() % 60;
    const auto free_one = [&] {
      const std::size_t k = random_() % live.size();
      step.push_back({Kind::kFree, live[k], 0});
      live.erase(live.begin() + static_cast<std::ptrdiff_t>(k));
    };
    const bool lends = random_() % 4 == 0;
    for (std::size_t slot = 0; slot < slots; ++slot) {
      const std::size_t scale = Kibibytes(1) << (random_() % 11);
      step.push_back({Kind::kAllocate, slot, 1 + scale * (1 + random_() % 3)});
      step.push_back({Kind::kUse, slot, 0});
      if (lends && random_() % 8 == 0) step.push_back({Kind::kLend, slot, 0});
      live.push_back(slot);
      while (!live.empty() && random_() % 3 == 0) free_one();
      if (live.size() > 12) free_one();
    }
    while (!live.empty()) free_one();
    return step;
  }

  void Play(Lane& lane, const StepEvent& event) {
    switch (event.kind) {
      case Kind::kAllocate:
        lane.live[event.slot] = TryAlloc(lane, event.bytes);
        return;
      case Kind::kUse:
        return Use(lane.live[event.slot], lane.stream);
      case Kind::kLend:
        return Share(lane, lane.live[event.slot]);
      case Kind::kFree:
        lane.live.erase(event.slot);
        return;
    }
  }
  // Null if the device is full.
  AllocationPtr TryAlloc(const Lane& lane, std::size_t bytes) {
    try {
      return facade_->Alloc(DevicePlace(0), bytes, lane.stream);
    } catch (const OutOfMemory&) {
      return nullptr;
    }
  }
  void Use(const AllocationPtr& block, Stream stream) {
    if (block == nullptr) return;
    const WorkRange range{reinterpret_cast<DevicePtr>(block->data()),
                          block->size(), true};
    EXPECT_EQ(platform_->work(0)->Enqueue(stream, &range, 1, 0, 0),
              Status::kSuccess);
  }
  // Another stream uses the block, behind the work of this one.
  void Share(const Lane& lane, const AllocationPtr& block) {
    if (block == nullptr) return;
    const Stream other = lanes_[lane.stream.uid % std::size(lanes_)].stream;
    if (other.uid == lane.stream.uid) return;
    Event event;
    EXPECT_EQ(device().EventCreate(&event, kEventDisableTiming),
              Status::kSuccess);
    EXPECT_EQ(device().EventRecord(event, lane.stream, 0), Status::kSuccess);
    EXPECT_EQ(device().StreamWaitEvent(other, event, 0), Status::kSuccess);
    EXPECT_EQ(device().EventDestroy(event), Status::kSuccess);
    Use(block, other);
    facade_->RecordStream(block, other);
  }
  void Disturb(Lane& lane) {
    switch (random_() % 6) {
      case 0:
        lane.live[1000 + random_() % 4] =
            TryAlloc(lane, Kibibytes(1 + random_() % 4000));
        Use(lane.live[1000], lane.stream);
        return;
      case 1:
        facade_->Release(DevicePlace(0));
        return;
      case 2:
        EXPECT_EQ(device().Synchronize(), Status::kSuccess);
        return;
      case 3:
        EXPECT_LE(StrategyOf(lane).in_use_bytes, Mebibytes(160));
        return;
      default:
        lane.live.erase(1000 + random_() % 4);
    }
  }

  std::mt19937_64 random_;
  std::shared_ptr<SimPlatform> platform_;
  std::unique_ptr<AllocatorFacade> facade_;
  Lane lanes_[3];
};

class StressStepsTest : public ::testing::TestWithParam<std::string> {};

TEST_P(StressStepsTest, StepsThatRepeatMeetNoHazard) {
  const std::uint64_t operations = StressOperations(kStepOperations);
  std::uint64_t seed = StressSeed() << 16;
  for (std::uint64_t done = 0; done < operations && !HasFailure();) {
    RepeatingProgram program(GetParam(), ++seed);
    const std::uint64_t end = done + kOperationsOfAProgram;
    while (done < end && !HasFailure()) done += program.Run();
    program.Finish();
    if (HasFailure()) ADD_FAILURE() << "seed " << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Options, StressStepsTest,
    ::testing::Values("", "strata_front_cache=off", "strata_front_cache=speed",
                      "strata_cross_stream_wait",
                      "auto_growth_chunk_rule=exact",
                      "strata_stream_lock=biased"),
    [](const ::testing::TestParamInfo<std::string>& instance) {
      return NameOf(instance.param);
    });

}  // namespace
}  // namespace strata
