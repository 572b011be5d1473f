// Streams that the caller destroys without notice. The facade queries the
// device for them once. Their memory is free after one wait for the device.

#include <glog/logging.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/tests/facade/graphs/graph_fixture.h"

namespace strata {
namespace {

class ErrorCounter final : public google::LogSink {
 public:
  ErrorCounter() { google::AddLogSink(this); }
  ~ErrorCounter() override { google::RemoveLogSink(this); }
  void send(google::LogSeverity severity, const char* /*full_filename*/,
            const char* /*base_filename*/, int /*line*/,
            const struct ::tm* /*time*/, const char* message,
            std::size_t message_len) override {
    if (severity >= google::GLOG_ERROR) {
      errors.emplace_back(message, message_len);
    }
  }

  std::vector<std::string> errors;
};

class LostStreamsFixture : public GraphFixture {
 protected:
  LostStreamsFixture()
      : GraphFixture([] {
          PlatformOptions options;
          options.sim_progress = "lazy";
          return options;
        }()) {}

  void BuildStrategy(const std::string& options) {
    Build("gpu_allocator_retry_time=0,bfc_allow_growth=true," + options);
    lost_ = NewStream();
    other_ = NewStream();
  }
  // A freed and a live block of a stream, which is then destroyed.
  void Lose() {
    AllocationPtr freed = Alloc(Mebibytes(12), lost_);
    live_ = Alloc(Mebibytes(3), lost_);
    Use(freed, lost_);
    freed.reset();
    Destroy(lost_);
  }
  AllocationPtr TryAlloc(std::size_t bytes) {
    Failure failure;
    return facade().TryAlloc(Here(), Request{bytes}, other_, failure);
  }

  Stream lost_;
  Stream other_;
  AllocationPtr live_;
};

class LostStreamsTest : public LostStreamsFixture,
                        public testing::WithParamInterface<const char*> {
 protected:
  LostStreamsTest() {
    BuildStrategy("allocator_strategy=" + std::string(GetParam()));
  }
};

TEST_P(LostStreamsTest, TheDeviceIsAskedAndTheErrorLoggedOnce) {
  Lose();
  const ErrorCounter counter;
  const CallLog log(device());
  for (int i = 0; i < 5; ++i) {
    Alloc(Mebibytes(1), other_).reset();
    facade().Release(Here());
  }
  live_.reset();
  facade().Release(Here());
  EXPECT_EQ(counter.errors.size(), 1U);
  EXPECT_LE(log.Failed(), 2U);
  EXPECT_EQ(Reserved(), 0U);
}

TEST_P(LostStreamsTest, AStreamNamedAgainIsNotLoggedAgain) {
  Lose();
  live_.reset();
  const ErrorCounter counter;
  for (int i = 0; i < 3; ++i) {
    TryAlloc(Mebibytes(56)).reset();
    facade().Release(Here());
    Failure failure;  // cuda_malloc_async refuses
    facade().TryAlloc(Here(), Request{Mebibytes(3)}, lost_, failure).reset();
  }
  EXPECT_LE(counter.errors.size(), 1U);
}

TEST_P(LostStreamsTest, ItsMemoryIsFreeAfterOneWait) {
  Lose();
  live_.reset();
  const CallLog log(device());
  EXPECT_NE(TryAlloc(Mebibytes(56)), nullptr);
  facade().Release(Here());
  EXPECT_LE(log.Of(DeviceCall::kSynchronize).size(), 1U);
}

TEST_P(LostStreamsTest, NobodyWaitsForTheDeviceBesideACapture) {
  Lose();
  live_.reset();
  {
    CaptureGuard guard(facade(), NewStream());
    const CallLog log(device());
    facade().Release(Here());
    TryAlloc(Mebibytes(60)).reset();
    EXPECT_EQ(log.Of(DeviceCall::kSynchronize).size(), 0U);
    Finish(guard);
  }
  facade().Release(Here());
  EXPECT_EQ(Reserved(), 0U);
}

// The next stream has the handle of the destroyed one.
TEST_P(LostStreamsTest, AStreamWithItsHandleClosesItsChain) {
  Lose();
  const Stream next = NewStream();
  ASSERT_EQ(next.handle, lost_.handle);
  const AllocationPtr block = Alloc(Mebibytes(1), next);
  EXPECT_EQ(facade().GetStream(*block), next);
  live_.reset();
  facade().Release(Here());
  EXPECT_LE(Reserved(), Mebibytes(60));
}

INSTANTIATE_TEST_SUITE_P(
    Strategies, LostStreamsTest,
    testing::Values("auto_growth", "bfc", "cuda_malloc_async", "direct",
                    "naive_best_fit", "pool", "thread_local"),
    [](const auto& test) { return std::string(test.param); });

class CheckedStreamsTest : public LostStreamsFixture {};

TEST_F(CheckedStreamsTest, AHandleNamesTheNextStreamOnceItWasRefused) {
  BuildStrategy("strata_check_streams");
  const auto alloc = [&](void* handle) {
    return facade().Alloc(Here(), Request{1000}, handle);
  };
  alloc(lost_.handle).reset();
  Destroy(lost_);
  const Stream next = NewStream();
  ASSERT_EQ(next.handle, lost_.handle);
  EXPECT_THROW(alloc(next.handle), std::invalid_argument);
  const AllocationPtr block = alloc(next.handle);
  EXPECT_EQ(facade().GetStream(*block), next);
}

}  // namespace
}  // namespace strata
