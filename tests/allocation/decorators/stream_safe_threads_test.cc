// Marks, frees and stream ends from many threads (paddle.md §5 B3: they were
// not synchronised).

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strata/allocation/decorators/stream_safe_allocator.h"
#include "strata/tests/allocation/decorators/stream_safe_fixture.h"
#include "strata/tests/testing/layers/live_ranges.h"

namespace strata {
namespace {

class StreamSafeThreadsTest : public ::testing::TestWithParam<const char*> {
 protected:
  static PoolPlaceOptions Progress() {
    PoolPlaceOptions options;
    options.progress = GetParam();
    return options;
  }
  std::shared_ptr<StreamSafeAllocator> NewLayer() {
    return std::make_shared<StreamSafeAllocator>(
        std::make_shared<ShelfAllocator>(place_.pool()), place_.frees(),
        place_.NewChainStream());
  }

  PoolPlace place_{Progress()};
};

TEST_P(StreamSafeThreadsTest, MarkFreeAndDrainSideBySide) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 200;
  const Stream a = place_.NewStream();
  const Stream b = place_.NewStream();
  LiveRanges live;
  std::vector<std::shared_ptr<StreamSafeAllocator>> layers;
  for (int i = 0; i < 2; ++i) layers.push_back(NewLayer());
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      StreamSafeAllocator& layer = *layers[static_cast<std::size_t>(t) % 2];
      for (int i = 0; i < kRounds; ++i) {
        AllocationPtr mine = layer.Allocate(4096);
        EXPECT_TRUE(live.Add(*mine));
        layer.RecordStream(mine.get(), a);
        layer.RecordStream(mine.get(), b);
        if (i % 3 == t % 3) layer.EraseStream(mine.get(), b);
        if (i % 50 == 7) layer.Release();
        EXPECT_TRUE(live.Remove(*mine));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  place_.frees()->Close();
  EXPECT_FALSE(place_.frees()->any());
}

TEST_P(StreamSafeThreadsTest, OneAllocationIsMarkedByManyThreads) {
  const std::shared_ptr<StreamSafeAllocator> layer = NewLayer();
  std::vector<Stream> streams;
  for (int i = 0; i < 4; ++i) streams.push_back(place_.NewStream());
  for (int round = 0; round < 50; ++round) {
    AllocationPtr shared = layer->Allocate(4096);
    std::vector<std::thread> threads;
    for (const Stream& stream : streams) {
      threads.emplace_back([&layer, &shared, stream] {
        EXPECT_TRUE(layer->RecordStream(shared.get(), stream));
        layer->EraseStream(shared.get(), stream);
        EXPECT_TRUE(layer->RecordStream(shared.get(), stream));
      });
    }
    for (std::thread& thread : threads) thread.join();
    shared.reset();
    EXPECT_EQ(place_.frees()->deferred().blocks, 1U);
    EXPECT_EQ(place_.frees()->Await(), 4096U);
  }
}

TEST_P(StreamSafeThreadsTest, StreamsEndWhileOthersDrain) {
  const std::shared_ptr<StreamSafeAllocator> layer = NewLayer();
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 50; ++i) {
        AllocationPtr mine = layer->Allocate(4096);
        const Stream brief = place_.NewStream();
        EXPECT_TRUE(layer->RecordStream(mine.get(), brief));
        if (t == 0) mine.reset();
        layer->StreamDestroyed(brief);
        EXPECT_EQ(place_.device().StreamDestroy(brief), Status::kSuccess);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  place_.frees()->Close();
  EXPECT_FALSE(place_.frees()->any());
}

INSTANTIATE_TEST_SUITE_P(Progress, StreamSafeThreadsTest,
                         ::testing::Values("inline", "lazy", "seeded"),
                         [](const auto& parameter) {
                           return std::string(parameter.param);
                         });

}  // namespace
}  // namespace strata
