#ifndef STRATA_TESTS_PLATFORM_SIM_STREAMS_SIM_PROGRESS_FIXTURE_H_
#define STRATA_TESTS_PLATFORM_SIM_STREAMS_SIM_PROGRESS_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>

#include "strata/platform/device_work.h"
#include "strata/platform/sim/device/sim_device.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/tests/platform/sim/device/sim_fixture.h"

namespace strata::sim {

// Two simulated devices. The test chooses when their work runs. Host functions
// write to a log, which shows the order of the work.
class SimProgressFixture : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kFrames = 64;

  void Build(const std::string& progress, const std::string& free = "sync",
             std::uint64_t seed = 1) {
    PlatformOptions options = SimOptions(2, kFrames);
    options.sim_progress = progress;
    options.sim_free = free;
    options.sim_seed = seed;
    Build(options);
  }
  void Build(const PlatformOptions& options) {
    platform_ = std::make_unique<SimPlatform>(options);
  }

  SimDevice& device(int ordinal = 0) { return platform_->sim_device(ordinal); }

  Stream NewStream(unsigned flags = kStreamNonBlocking, int ordinal = 0) {
    Stream stream;
    EXPECT_EQ(device(ordinal).StreamCreate(&stream, flags), Status::kSuccess);
    return stream;
  }
  Event NewEvent(int ordinal = 0) {
    Event event;
    EXPECT_EQ(device(ordinal).EventCreate(&event, kEventDisableTiming),
              Status::kSuccess);
    return event;
  }
  Event Record(const Stream& stream) {
    const Event event = NewEvent(stream.device);
    EXPECT_EQ(device(stream.device).EventRecord(event, stream, 0),
              Status::kSuccess);
    return event;
  }
  void WaitFor(const Stream& stream, Event event) {
    EXPECT_EQ(device(stream.device).StreamWaitEvent(stream, event, 0),
              Status::kSuccess);
  }

  // Submits work to `stream` that appends `name` to log_.
  void Mark(const Stream& stream, char name) {
    marks_.push_back({this, name});
    EXPECT_EQ(device(stream.device)
                  .LaunchHostFunc(
                      stream,
                      [](void* mark) {
                        auto* self = static_cast<LogMark*>(mark);
                        self->fixture->log_ += self->name;
                      },
                      &marks_.back()),
              Status::kSuccess);
  }

  // Submits work that keeps `stream` busy for `busy_ns` and accesses no memory.
  void Busy(const Stream& stream, std::uint64_t busy_ns = 1000) {
    EXPECT_EQ(
        platform_->work(stream.device)->Enqueue(stream, nullptr, 0, busy_ns, 0),
        Status::kSuccess);
  }

  // A pinned word that lives until the end of the platform.
  std::uint64_t* NewWord() {
    void* word = nullptr;
    EXPECT_EQ(device().MallocHost(&word, sizeof(std::uint64_t), 0),
              Status::kSuccess);
    return static_cast<std::uint64_t*>(word);
  }
  static DevicePtr At(const void* ptr) {
    return reinterpret_cast<DevicePtr>(ptr);
  }

  std::unique_ptr<SimPlatform> platform_;
  std::string log_;

 private:
  struct LogMark {
    SimProgressFixture* fixture;
    char name;
  };

  std::deque<LogMark> marks_;
};

}  // namespace strata::sim

#endif  // STRATA_TESTS_PLATFORM_SIM_STREAMS_SIM_PROGRESS_FIXTURE_H_
