// Callbacks of all kinds that call the facade that runs them: observers of the
// device, visitors of chunks, log sinks.

#include <glog/logging.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "strata/allocation/error.h"
#include "strata/allocation/visitor.h"
#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

class CountBlocks final : public AllocatorVisitor {
 public:
  void VisitLayer(const Allocator& /*layer*/) override {}
  void VisitBlocks(const Allocator& /*layer*/,
                   const std::vector<BlockInfo>& blocks) override {
    count += blocks.size();
  }
  std::size_t count = 0;
};

class CallingBackTest : public FacadeFixture,
                        public testing::WithParamInterface<const char*> {
 protected:
  void BuildStrategy(const std::string& more = "") {
    Build("allocator_strategy=" + std::string(GetParam()) + more);
    for (Stream& stream : streams_) stream = NewStream();
  }

  // The calls that every callback may make on the facade.
  void CallBack() {
    if (is_inside_) return;
    is_inside_ = true;
    if (++calls_ < 10) facade().GetAllocator(kPlace, NewStream());
    for (const Stream& stream : streams_) {
      Failure failure;
      const AllocationPtr block =
          facade().TryAlloc(kPlace, Request{Kibibytes(100)}, stream, failure);
      if (block != nullptr) facade().RecordStream(*block, streams_[0]);
    }
    facade().GetStats(kPlace);
    facade().StatsJson();
    facade().LargestStreamPeak(kPlace);
    CountBlocks blocks;
    facade().AcceptAll(kPlace, blocks);
    facade()
        .AddOutOfMemoryCallback(kPlace, [](Place, std::size_t) { return 0; })
        .Reset();
    facade().Release(kPlace, streams_[1]);
    facade().Release(kPlace);
    is_inside_ = false;
  }

  // Grows, splits, marks, releases and runs out of memory.
  void Work() {
    std::vector<AllocationPtr> live;
    for (std::size_t i = 0; i < 12; ++i) {
      const std::size_t bytes = Kibibytes(700) * (i + 1);
      Failure failure;
      AllocationPtr block =
          facade().TryAlloc(kPlace, Request{bytes}, streams_[i % 3], failure);
      if (block == nullptr) continue;
      facade().RecordStream(*block, streams_[(i + 1) % 3]);
      if (i % 3 != 0) live.push_back(std::move(block));
    }
    Failure failure;
    facade().TryAlloc(kPlace, Request{kMemoryBytes}, streams_[0], failure);
    live.clear();
    const AllocationPtr large =
        facade().TryAlloc(kPlace, Request{Mebibytes(40)}, streams_[1], failure);
    facade().Release(kPlace);
  }

  std::array<Stream, 3> streams_;
  bool is_inside_ = false;
  int calls_ = 0;
};

TEST_P(CallingBackTest, AnObserverOfTheDeviceMayCallTheFacade) {
  BuildStrategy();
  device().SetCallObserver([this](const CallRecord&) { CallBack(); });
  Work();
  device().SetCallObserver(nullptr);
  EXPECT_GT(calls_, 0);
}

TEST_P(CallingBackTest, AVisitorOfChunksMayCallTheFacade) {
  if (GetParam() == std::string("cuda_malloc_async")) {
    GTEST_SKIP() << "has no chunks to visit";
  }
  BuildStrategy();
  std::ptrdiff_t bytes = 0;
  facade().AddVisitor(kPlace, [&](Place, void*, std::size_t size, int change) {
    bytes += change * static_cast<std::ptrdiff_t>(size);
    if (facade_ != nullptr) CallBack();
  });
  Work();
  EXPECT_GT(calls_, 0);
  EXPECT_EQ(bytes, facade().GetStats(kPlace).reserved_bytes);
  facade_.reset();
  EXPECT_EQ(bytes, 0);
}

// Works after each message, when glog has released its own locks.
class WorkingSink final : public google::LogSink {
 public:
  explicit WorkingSink(std::function<void()> work) : work_(std::move(work)) {
    google::AddLogSink(this);
  }
  WorkingSink(const WorkingSink&) = delete;
  WorkingSink& operator=(const WorkingSink&) = delete;
  ~WorkingSink() override { google::RemoveLogSink(this); }

  void send(google::LogSeverity, const char*, const char*, int, const tm*,
            const char*, std::size_t) override {}
  void WaitTillSent() override { work_(); }

 private:
  const std::function<void()> work_;
};

TEST_P(CallingBackTest, ALogSinkMayCallTheFacade) {
  BuildStrategy(",gpu_allocator_retry_time=1,strata_retry_alone=true");
  const int level = FLAGS_v;
  FLAGS_v = 3;
  {
    const WorkingSink sink([this] {
      FLAGS_v = 0;  // glog must not log from inside a sink
      CallBack();
      FLAGS_v = 3;
    });
    facade().GetAllocator(kPlace, NewStream());
    Work();
  }
  FLAGS_v = level;
  EXPECT_GT(calls_, 0);
}

INSTANTIATE_TEST_SUITE_P(, CallingBackTest,
                         testing::Values("auto_growth", "bfc", "naive_best_fit",
                                         "thread_local", "pool", "direct",
                                         "cuda_malloc_async"),
                         [](const auto& name) {
                           return std::string(name.param);
                         });

}  // namespace
}  // namespace strata
