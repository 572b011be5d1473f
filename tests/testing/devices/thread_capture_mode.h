#ifndef STRATA_TESTS_TESTING_DEVICES_THREAD_CAPTURE_MODE_H_
#define STRATA_TESTS_TESTING_DEVICES_THREAD_CAPTURE_MODE_H_

#include <gtest/gtest.h>

#include "strata/platform/device.h"

namespace strata {

// Sets the capture mode of the calling thread to `mode` (cuda_semantics.md C18)
// during its lifetime.
class ThreadCaptureMode {
 public:
  ThreadCaptureMode(Device* device, CaptureMode mode)
      : device_(*device), mode_(mode) {
    Exchange();
  }
  ThreadCaptureMode(const ThreadCaptureMode&) = delete;
  ThreadCaptureMode& operator=(const ThreadCaptureMode&) = delete;
  ~ThreadCaptureMode() { Exchange(); }

 private:
  void Exchange() {
    EXPECT_EQ(device_.ThreadExchangeCaptureMode(&mode_), Status::kSuccess);
  }

  Device& device_;
  CaptureMode mode_;  // mode to restore
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_DEVICES_THREAD_CAPTURE_MODE_H_
