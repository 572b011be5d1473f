#ifndef STRATA_TESTS_TESTING_DEVICES_DEVICE_FIXTURE_H_
#define STRATA_TESTS_TESTING_DEVICES_DEVICE_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "strata/platform/device.h"
#include "strata/platform/device_work.h"
#include "strata/platform/platform.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/tests/testing/devices/device_config.h"

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

// Part of the name of each test that pins the observed behaviour of a GPU.
inline constexpr char kPins[] = "Pins";

// A test that runs on a device of each kind. At the end of the test, the
// fixture undoes the New… functions and expects that the simulated devices have
// no leaks.
class DeviceTest : public ::testing::TestWithParam<DeviceConfig> {
 protected:
  // Frame of the simulated device, and page of a GPU, in bytes.
  static constexpr std::size_t kBlockBytes = std::size_t{2} << 20;
  // Large enough to be visible in the free memory of a GPU.
  static constexpr std::size_t kLargeBytes = std::size_t{64} << 20;
  static constexpr std::uint64_t kFirst = 0x1111111111111111;
  static constexpr std::uint64_t kSecond = 0x2222222222222222;

  void SetUp() override;
  void TearDown() override;

  Device& device(int ordinal = 0) { return platform_->device(ordinal); }
  // Null unless the devices are simulated.
  SimPlatform* sim() { return sim_; }
  bool HasTwoDevices() const { return platform_->device_count() >= 2; }
  // True if there is a second device, and the two devices can access each
  // other.
  bool HasPeers();
  // True if device memory stores the bytes written to it.
  bool HasBytes() const;
  // True if device memory stores each write of at most `bytes` bytes.
  bool HasBytesOf(std::size_t bytes) const;
  // True if long work stays pending until the host waits for it.
  bool CanHold() const;
  // True if polling for completion is enough for work to complete.
  bool PollingMakesProgress() const;

  Stream NewStream(unsigned flags = kStreamNonBlocking, int ordinal = 0);
  Event NewEvent(int ordinal = 0);
  DevicePtr NewMemory(std::size_t bytes, int ordinal = 0);
  // Page-locked words of the host, all 0.
  std::uint64_t* NewPinned(std::size_t words);
  // Runs `undo` when the test ends, in reverse order.
  void AtEnd(std::function<void()> undo) { undo_.push_back(std::move(undo)); }

  DeviceWork* Work(const Stream& stream) {
    return platform_->work(stream.device);
  }
  // Submits work that is long enough to be pending during the next calls.
  void LongWork(const Stream& stream);
  // Stores `word` in each word of the range, by work in `stream`.
  void Write(DevicePtr ptr, std::size_t bytes, std::uint64_t word,
             const Stream& stream);
  // Write() behind work as long as LongWork().
  void LongWrite(DevicePtr ptr, std::size_t bytes, std::uint64_t word,
                 const Stream& stream);
  // Write(), launched early (DeviceWork::EnqueueEarly).
  void WriteEarly(DevicePtr ptr, std::size_t bytes, std::uint64_t word,
                  const Stream& stream);
  // Reads the range, by work in `stream`.
  void Read(DevicePtr ptr, std::size_t bytes, const Stream& stream);
  // Waits for the device and copies the range to the host. Fails the test
  // unless each word is `word`; passes if the device stores no bytes.
  void ExpectWords(DevicePtr ptr, std::size_t bytes, std::uint64_t word,
                   int ordinal = 0);

  std::size_t FreeBytes(int ordinal = 0);
  // Expects that at least `bytes` are free again. On a GPU, other processes use
  // memory too, so a part of kLargeBytes may be missing.
  void ExpectFreeBytes(std::size_t bytes);
  // Polls until the result is not kNotReady.
  Status PollUntilDone(Event event);

  // The test made the devices refuse every call: the fixture skips all undo
  // steps.
  void GiveUpDevices() { given_up_ = true; }
  // Records the behaviour of this device where CUDA's documents do not specify
  // it. For tests with kPins in their names.
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

#endif  // STRATA_TESTS_TESTING_DEVICES_DEVICE_FIXTURE_H_
