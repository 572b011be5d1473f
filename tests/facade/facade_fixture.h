#ifndef STRATA_TESTS_FACADE_FACADE_FIXTURE_H_
#define STRATA_TESTS_FACADE_FACADE_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "strata/base/size.h"
#include "strata/facade/allocator_facade.h"
#include "strata/platform/calls/device_call.h"
#include "strata/platform/sim/device/sim_device.h"
#include "strata/platform/sim/device/sim_platform.h"

namespace strata {

// The place of tests that need only one place.
inline constexpr Place kPlace = DevicePlace(0);

// Simulated devices of 64 MiB, and a facade on them. At the end of a test, the
// facade must have returned all memory and objects to the devices.
class FacadeFixture : public testing::Test {
 protected:
  static constexpr std::size_t kMemoryBytes = Mebibytes(64);

  explicit FacadeFixture(int devices = 1,
                         const std::string& progress = "inline")
      : FacadeFixture([&] {
          PlatformOptions options;
          options.sim_progress = progress;
          options.sim_devices = devices;
          return options;
        }()) {}
  // The options do not set the size of the memory.
  explicit FacadeFixture(PlatformOptions options) {
    options.sim_memory_bytes = kMemoryBytes;
    platform_ = std::make_shared<SimPlatform>(options);
  }

  ~FacadeFixture() override {
    facade_.reset();
    for (const Stream& stream : streams_) {
      EXPECT_EQ(device(stream.device).StreamDestroy(stream), Status::kSuccess);
    }
    EXPECT_EQ(platform_->LeakReport(), "");
  }

  SimDevice& device(int ordinal = 0) { return platform_->sim_device(ordinal); }
  AllocatorFacade& facade() { return *facade_; }

  // Builds the facade from an option string. STRATA_TEST_STRATEGY in the
  // environment replaces the default strategy.
  AllocatorFacade& Build(const std::string& options = "") {
    facade_ = std::make_unique<AllocatorFacade>(Parsed(options), platform_);
    return *facade_;
  }

  static Options Parsed(const std::string& text) {
    const char* const strategy = std::getenv("STRATA_TEST_STRATEGY");
    Options options = Options::Parse(text);
    if (strategy != nullptr && options.Strategy() == "auto") {
      options.allocator_strategy = strategy;
    }
    return options;
  }

  // A stream that lives until the end of the test, or until Destroy.
  Stream NewStream(int ordinal = 0) {
    Stream stream;
    EXPECT_EQ(device(ordinal).StreamCreate(&stream, kStreamNonBlocking),
              Status::kSuccess);
    streams_.push_back(stream);
    return stream;
  }
  void Destroy(Stream stream) {
    streams_.erase(std::find(streams_.begin(), streams_.end(), stream));
    EXPECT_EQ(device(stream.device).StreamDestroy(stream), Status::kSuccess);
  }

  std::uint64_t Count(DeviceCall call, int ordinal = 0) {
    return device(ordinal).CallCount(call);
  }
  // Number of calls of all kinds that reached the device.
  std::uint64_t CountAll(int ordinal = 0) {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < kDeviceCallCount; ++i) {
      count += Count(static_cast<DeviceCall>(i), ordinal);
    }
    return count;
  }

  std::shared_ptr<SimPlatform> platform_;
  std::unique_ptr<AllocatorFacade> facade_;

 private:
  std::vector<Stream> streams_;
};

// Records the calls to a device during its lifetime.
class CallLog {
 public:
  explicit CallLog(SimDevice& device) : device_(device) {
    device_.SetCallObserver([this](const CallRecord& call) {
      const std::lock_guard<std::mutex> guard(mutex_);
      calls_.push_back(call);
    });
  }
  CallLog(const CallLog&) = delete;
  CallLog& operator=(const CallLog&) = delete;
  ~CallLog() { device_.SetCallObserver(nullptr); }

  std::vector<CallRecord> calls() const {
    const std::lock_guard<std::mutex> guard(mutex_);
    return calls_;
  }
  std::vector<CallRecord> Of(DeviceCall kind) const {
    std::vector<CallRecord> result;
    for (const CallRecord& call : calls()) {
      if (call.call == kind) result.push_back(call);
    }
    return result;
  }
  // Number of calls on `stream`.
  std::size_t On(Stream stream) const {
    std::size_t count = 0;
    for (const CallRecord& call : calls()) {
      count += call.stream_uid == stream.uid;
    }
    return count;
  }
  std::size_t Failed() const {
    std::size_t count = 0;
    for (const CallRecord& call : calls()) {
      count += call.status != Status::kSuccess;
    }
    return count;
  }

 private:
  SimDevice& device_;
  mutable std::mutex mutex_;
  std::vector<CallRecord> calls_;  // guarded by mutex_
};

// The message of the Exception that `body` throws. Returns "" and fails the
// test if it throws something else or nothing.
template <class Exception, class Body>
std::string TextOf(Body body) {
  try {
    body();
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Exception& error) {
    return error.what();
  } catch (const std::exception& error) {
    ADD_FAILURE() << "another exception was thrown: " << error.what();
  }
  return "";
}

// The message of the error of an option string that Options::Parse refuses.
inline std::string ParseError(const std::string& text) {
  return TextOf<std::invalid_argument>([&] { Options::Parse(text); });
}

}  // namespace strata

#endif  // STRATA_TESTS_FACADE_FACADE_FIXTURE_H_
