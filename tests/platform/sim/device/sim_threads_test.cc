// Threads that share streams, events and memory of one platform.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "strata/tests/platform/sim/streams/sim_progress_fixture.h"

namespace strata::sim {
namespace {

class SimThreadsTest : public SimProgressFixture,
                       public testing::WithParamInterface<const char*> {
 protected:
  static constexpr int kThreads = 4;
  static constexpr int kSteps = 300;

  // The actions of each thread. The streams and events are shared.
  void Work(std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const Stream mine = device().PerThreadStream();
    for (int step = 0; step < kSteps; ++step) {
      const Stream& stream =
          step % 5 == 0 ? mine : streams_[random() % streams_.size()];
      const Event event = events_[random() % events_.size()];
      switch (random() % 6) {
        case 0:
          Count(stream);
          break;
        case 1:
          EXPECT_EQ(device().EventRecord(event, stream, 0), Status::kSuccess);
          break;
        case 2:
          EXPECT_EQ(device().StreamWaitEvent(stream, event, 0),
                    Status::kSuccess);
          break;
        case 3:
          EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
          break;
        case 4:
          UseMemory(stream);
          break;
        default:
          EXPECT_NE(device().EventQuery(event), Status::kInvalidValue);
          break;
      }
    }
  }

  std::vector<Stream> streams_;
  std::vector<Event> events_;
  std::atomic<int> submitted_{0};
  std::atomic<int> ran_{0};

 private:
  void Count(const Stream& stream) {
    ++submitted_;
    EXPECT_EQ(
        device().LaunchHostFunc(
            stream, [](void* ran) { ++*static_cast<std::atomic<int>*>(ran); },
            &ran_),
        Status::kSuccess);
  }

  void UseMemory(const Stream& stream) {
    DevicePtr ptr = 0;
    ASSERT_EQ(device().MemAlloc(&ptr, 4096), Status::kSuccess);
    EXPECT_EQ(device().MemsetAsync(ptr, 1, 4096, stream), Status::kSuccess);
    EXPECT_EQ(device().StreamSynchronize(stream), Status::kSuccess);
    EXPECT_EQ(device().MemFree(ptr), Status::kSuccess);
  }
};

TEST_P(SimThreadsTest, EveryFunctionRunsOnceAndNothingIsLost) {
  Build(GetParam());
  streams_ = {NewStream(), NewStream(kStreamDefault), NewStream(),
              device().LegacyStream()};
  for (int i = 0; i < 3; ++i) events_.push_back(NewEvent());
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back(
        [this, i] { Work(static_cast<std::uint64_t>(i) + 1); });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(device().Synchronize(), Status::kSuccess);
  EXPECT_EQ(ran_.load(), submitted_.load());
  EXPECT_GT(submitted_.load(), kThreads * kSteps / 20);
  EXPECT_EQ(device().PendingCount(), 0u);
  EXPECT_EQ(device().Leaks().allocations, 0u);
}

INSTANTIATE_TEST_SUITE_P(Progress, SimThreadsTest,
                         testing::Values("inline", "lazy", "seeded", "timed",
                                         "manual"),
                         [](const testing::TestParamInfo<const char*>& param) {
                           return std::string(param.param);
                         });

}  // namespace
}  // namespace strata::sim
