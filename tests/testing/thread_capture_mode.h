#ifndef STRATA_TESTS_TESTING_THREAD_CAPTURE_MODE_H_
#define STRATA_TESTS_TESTING_THREAD_CAPTURE_MODE_H_

#include <gtest/gtest.h>

#include "strata/platform/device.h"

namespace strata {

// Gives the calling thread `mode` (cuda_semantics.md C18) while it lives.
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
  CaptureMode mode_;  // the one to go back to
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_THREAD_CAPTURE_MODE_H_
