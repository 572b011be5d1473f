// Each call of the driver below the CUDA platform fails once, for each
// strategy, over the stand-in driver: nothing leaks, and later calls succeed.

#include <dirent.h>
#include <glog/logging.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "strata/platform/cuda/cuda_platform.h"
#include "strata/tests/facade/fault_session.h"
#include "strata/tests/testing/devices/cuda/driver_faults.h"

namespace strata {
namespace {

// A program with a current context, as of the runtime. A failure to make one
// current is a failure of the call of the device, which the conformance suite
// covers (devices/cuda/faulting_cuda.cc).
class FacadeDriverFaultsTest : public testing::TestWithParam<const char*> {
 protected:
  using Body = std::function<void(FaultSession&)>;

  void SetUp() override {
    try {
      driver_ = FaultyCudaDriver();
    } catch (const std::exception& error) {
      GTEST_SKIP() << error.what();
    }
    if (driver_.simulated == nullptr) {
      GTEST_SKIP() << "the driver is not simulated";
    }
    FLAGS_minloglevel = google::GLOG_FATAL;  // thousands of failed calls
    CUcontext context = nullptr;
    ASSERT_EQ(driver_.DevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(driver_.CtxPushCurrent(context), CUDA_SUCCESS);
  }
  void TearDown() override {
    if (driver_.simulated == nullptr) return;
    CUcontext context = nullptr;
    EXPECT_EQ(driver_.CtxPopCurrent(&context), CUDA_SUCCESS);
    EXPECT_EQ(driver_.DevicePrimaryCtxRelease(0), CUDA_SUCCESS);
    FLAGS_minloglevel = google::GLOG_INFO;
  }

  static std::size_t CountDescriptors() {
    DIR* const folder = opendir("/proc/self/fd");
    std::size_t count = 0;
    while (readdir(folder) != nullptr) ++count;
    closedir(folder);
    return count;
  }
  // The state of the driver without its peaks.
  static std::string Objects() {
    std::string state = StateOfSimDriver();
    for (std::size_t at = state.find("peak "); at != std::string::npos;
         at = state.find("peak ")) {
      state.erase(at, state.find('\n', at) + 1 - at);
    }
    return state;
  }

  // A session. The `nth` call of the driver fails in `body`. Then `after` runs.
  // Returns the number of calls in `body`.
  std::uint64_t RunSession(std::uint64_t nth, const Body& body,
                           const Body& after) {
    const std::string objects = Objects();
    const std::size_t descriptors = CountDescriptors();
    std::uint64_t calls = 0;
    {
      FaultSession session(std::make_shared<cuda::CudaPlatform>(driver_),
                           GetParam());
      DriverFaults::Arm(nth);
      body(session);
      calls = DriverFaults::calls();
      EXPECT_EQ(DriverFaults::Disarm(), calls >= nth);
      DriverFaults::MakeUpThread();
      after(session);
      session.End();
    }
    DriverFaults::MakeUpReleases();
    EXPECT_EQ(Objects(), objects);
    EXPECT_EQ(CountDescriptors(), descriptors);
    return calls;
  }

  // A session for each call of `body`.
  void FailEveryCall(const Body& body, const Body& after) {
    std::uint64_t sessions = 0;
    for (std::uint64_t nth = 1; !HasFailure(); ++nth) {
      SCOPED_TRACE("call " + std::to_string(nth));
      const std::uint64_t calls = RunSession(nth, body, after);
      if (HasFailure()) {
        ADD_FAILURE() << DriverFaults::failed() << " failed";
      }
      if (calls < nth) break;
      ++sessions;
    }
    RecordProperty("sessions", std::to_string(sessions));
    EXPECT_GT(sessions, 0U);
  }

  cuda::CudaDriver driver_;
};

TEST_P(FacadeDriverFaultsTest, RequestsMayFail) {
  FailEveryCall([](FaultSession& session) { session.Run(); },
                [](FaultSession& session) {
                  session.ExpectUsable();
                  session.Finish();
                });
}

TEST_P(FacadeDriverFaultsTest, CapturesMayFail) {
  FailEveryCall([](FaultSession& session) { session.Capture(); },
                [](FaultSession& session) {
                  session.Capture();
                  session.ExpectUsable();
                  session.Finish();
                });
}

TEST_P(FacadeDriverFaultsTest, ExportsMayFail) {
  // Some strategies refuse an export before they call the driver.
  FailEveryCall([](FaultSession& session) { session.Export(); },
                [](FaultSession& session) {
                  session.ExpectUsable();
                  session.Finish();
                });
}

TEST_P(FacadeDriverFaultsTest, TheEndMayFail) {
  FailEveryCall(
      [](FaultSession& session) {
        session.Run();
        session.Close();
      },
      [](FaultSession&) {});
}

INSTANTIATE_TEST_SUITE_P(
    Options, FacadeDriverFaultsTest,
    testing::Values(
        "", "allocator_strategy=bfc", "allocator_strategy=cuda_malloc_async",
        "allocator_strategy=direct", "allocator_strategy=naive_best_fit",
        "allocator_strategy=pool", "allocator_strategy=thread_local",
        "allocator_strategy=virtual_memory",
        "alloc_fill_value=1,sync_after_alloc",
        "gpu_memory_limit_mb=60,strata_check_streams",
        "free_idle_chunk,auto_growth_chunk_rule=exact"));

}  // namespace
}  // namespace strata
