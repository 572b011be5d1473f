#ifndef STRATA_TESTS_TESTING_DEVICE_FIXTURE_H_
#define STRATA_TESTS_TESTING_DEVICE_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "strata/platform/device.h"
#include "strata/platform/device_work.h"
#include "strata/platform/platform.h"
#include "strata/platform/sim/sim_platform.h"
#include "strata/tests/testing/device_config.h"

// Skips the test, with the reason, unless `condition` holds.
#define STRATA_REQUIRE(condition, reason) \
  if (!(condition)) {                     \
    GTEST_SKIP() << (reason);             \
  }                                       \
  static_assert(true)

namespace strata {

inline constexpr char kNeedsPending[] =
    "work of this device may be done before it is looked at";
inline constexpr char kNeedsTwoDevices[] = "there is one device";
inline constexpr char kNeedsPeers[] = "no two devices that reach each other";
inline constexpr char kNeedsSimulation[] =
    "a driver leaves this undefined, or the process unusable";

// Part of the name of each test that records what a GPU does.
inline constexpr char kPins[] = "Pins";

// A test of a device of each kind. What the New… functions make is undone when
// the test ends; then the simulated devices must have no leaks.
class DeviceTest : public ::testing::TestWithParam<DeviceConfig> {
 protected:
  // A frame of the simulated device, and a page of a GPU's.
  static constexpr std::size_t kBlockBytes = std::size_t{2} << 20;
  // Enough for a GPU's free memory to show it.
  static constexpr std::size_t kLargeBytes = std::size_t{64} << 20;
  static constexpr std::uint64_t kFirst = 0x1111111111111111;
  static constexpr std::uint64_t kSecond = 0x2222222222222222;

  void SetUp() override;
  void TearDown() override;

  Device& device(int ordinal = 0) { return platform_->device(ordinal); }
  // Null unless the devices are simulated.
  SimPlatform* sim() { return sim_; }
  bool HasTwoDevices() const { return platform_->device_count() >= 2; }
  // Whether there is a second device, and the two can reach each other.
  bool HasPeers();
  // Whether device memory keeps what is written to it.
  bool HasBytes() const;
  // Whether long work stays pending until somebody waits for it.
  bool CanHold() const;
  // Whether asking whether work is done is enough for it to get done.
  bool PollingMakesProgress() const;

  Stream NewStream(unsigned flags = kStreamNonBlocking, int ordinal = 0);
  Event NewEvent(int ordinal = 0);
  DevicePtr NewMemory(std::size_t bytes, int ordinal = 0);
  // Page-locked words of the host, all 0.
  std::uint64_t* NewPinned(std::size_t words);
  // Runs `undo` when the test ends, last one first.
  void AtEnd(std::function<void()> undo) { undo_.push_back(std::move(undo)); }

  DeviceWork* Work(const Stream& stream) {
    return platform_->work(stream.device);
  }
  // Work that takes long enough for the calls after it to find it pending.
  void LongWork(const Stream& stream);
  // Stores `word` in each word of the range, by work in `stream`.
  void Write(DevicePtr ptr, std::size_t bytes, std::uint64_t word,
             const Stream& stream);
  // The same by work that takes as long as LongWork first.
  void LongWrite(DevicePtr ptr, std::size_t bytes, std::uint64_t word,
                 const Stream& stream);
  // The same as Write, launched early (DeviceWork::EnqueueEarly).
  void WriteEarly(DevicePtr ptr, std::size_t bytes, std::uint64_t word,
                  const Stream& stream);
  // Reads the range, by work in `stream`.
  void Read(DevicePtr ptr, std::size_t bytes, const Stream& stream);
  // Waits for the device, copies the range to the host and fails the test
  // unless each word is `word` or the device keeps no bytes.
  void ExpectWords(DevicePtr ptr, std::size_t bytes, std::uint64_t word,
                   int ordinal = 0);

  std::size_t FreeBytes(int ordinal = 0);
  // Checks that what was free is free again: on a GPU, where others take memory
  // as well, all but a part of kLargeBytes.
  void ExpectFreeBytes(std::size_t bytes);
  // Asks until the answer is not kNotReady.
  Status PollUntilDone(Event event);

  // Says that the test has made the devices refuse every call: nothing can be
  // undone.
  void GiveUpDevices() { given_up_ = true; }
  // Records what this device does where CUDA's documents do not say. For tests
  // with kPins in their names.
  static void Pin(const std::string& what, Status status);
  static void Pin(const std::string& what, std::uint64_t value);

 private:
  static void PinText(const std::string& what, const std::string& value);
  void Enqueue(const Stream& stream, const WorkRange* range,
               std::uint64_t busy_ns, std::uint64_t word);

  std::shared_ptr<Platform> platform_;
  SimPlatform* sim_ = nullptr;
  std::vector<std::function<void()>> undo_;
  bool given_up_ = false;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_DEVICE_FIXTURE_H_
