// The part of StreamModel for captures and graphs.

#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>

#include "strata/allocation/error.h"
#include "strata/tests/testing/models/stream_model.h"

namespace strata {

void StreamModel::Begin() {
  const std::size_t stream = Below(kStreams);
  if (IsCapturing(stream) || graphs_.size() >= kMaxGraphs) return;
  auto capture = std::make_shared<Capture>();
  capture->origin = stream;
  const auto is_free = [&](const std::shared_ptr<Pool>& pool) {
    return std::none_of(capture_of_.begin(), capture_of_.end(),
                        [&](const auto& other) {
                          return other != nullptr && other->pool == pool;
                        });
  };
  if (!pools_.empty() && OneIn(2)) {
    capture->pool = pools_[Below(pools_.size())];
    if (!is_free(capture->pool)) return;
  } else {
    capture->pool = NewPool();
  }
  try {
    capture->guard = std::make_unique<CaptureGuard>(*facade_, streams_[stream],
                                                    capture->pool->id);
  } catch (const DeviceError&) {
    EXPECT_TRUE(options_.has_faults) << Where();
    if (!capture->pool->prepared) GiveEvents(*capture->pool);
    return;
  }
  capture->pool->id = capture->guard->pool();
  capture_of_[stream] = std::move(capture);
}

// Joins all streams of the capture to its origin again. No stream is in the
// capture afterwards.
void StreamModel::Leave(const std::shared_ptr<Capture>& capture) {
  for (std::size_t s = 0; s < kStreams; ++s) {
    if (capture_of_[s] == capture && s != capture->origin) {
      Order(s, capture->origin);
    }
  }
}

void StreamModel::End() {
  std::vector<std::shared_ptr<Capture>> open;
  for (std::size_t s = 0; s < kStreams; ++s) {
    if (IsCapturing(s) && capture_of_[s]->origin == s) {
      open.push_back(capture_of_[s]);
    }
  }
  if (open.empty()) return;
  const std::shared_ptr<Capture> capture = open[Below(open.size())];
  const bool gives_up = OneIn(8);
  if (!gives_up) Leave(capture);
  try {
    if (!gives_up) capture->graph = capture->guard->End();
  } catch (const DeviceError& error) {
    EXPECT_TRUE(options_.has_faults) << error.what() << "; " << Where();
  }
  capture->guard.reset();
  for (auto& of : capture_of_) {
    if (of == capture) of = nullptr;
  }
  if (!capture->graph) {
    GiveUp(capture);
    return;
  }
  Must("GraphInstantiate", [&] {
    return device().GraphInstantiate(&capture->exec, capture->graph, 0);
  });
  graphs_.push_back(capture);
  // Later captures may use its memory.
  if (!capture->pool->prepared && OneIn(3) && pools_.size() < 2) {
    try {
      facade_->PrepareMemoryPoolForCUDAGraph(capture->pool->id);
      facade_->CaptureEnded(capture->pool->id);
      capture->pool->prepared = true;
      pools_.push_back(capture->pool);
    } catch (const std::logic_error& error) {
      ADD_FAILURE() << error.what() << "; " << Where();
    }
  }
  Launch(capture);
  for (Live& live : live_) {
    if (live.capture != capture) continue;
    Record(live.ready, capture->origin);
    live.ordered = Bit(capture->origin);
  }
}

void StreamModel::GiveUp(const std::shared_ptr<Capture>& capture) {
  has_dropped_ = true;
  for (Live& live : live_) {
    std::erase(live.users, capture);
    if (live.capture != capture) continue;
    // Nothing in it ran yet, but earlier users of the memory may still be
    // running.
    WaitForPool(*capture->pool, capture->origin);
    Record(live.ready, capture->origin);
    live.ordered = Bit(capture->origin);
  }
  if (!capture->pool->prepared) GiveEvents(*capture->pool);
}

void StreamModel::WaitForPool(const Pool& pool, std::size_t stream) {
  if (pool.was_launched) WaitFor(pool.launched, stream);
  for (std::size_t s = 0; s < kStreams; ++s) {
    if ((pool.users & Bit(s)) != 0) WaitFor(pool.used[s], stream);
  }
}

void StreamModel::Launch(const std::shared_ptr<Capture>& capture) {
  const std::size_t origin = capture->origin;
  for (Live& live : live_) {
    const bool is_input = std::find(live.users.begin(), live.users.end(),
                                    capture) != live.users.end();
    if (!is_input) continue;
    if ((live.ordered & Bit(origin)) == 0) {
      WaitFor(live.ready, origin);
      live.ordered |= Bit(origin);
    }
    if (origin != live.owner) live.needs |= Bit(origin);
  }
  Pool& pool = *capture->pool;
  WaitForPool(pool, origin);
  Must("GraphLaunch",
       [&] { return device().GraphLaunch(capture->exec, streams_[origin]); });
  Record(pool.launched, origin);
  pool.was_launched = true;
  ++counts_.launches;
}

void StreamModel::Relaunch() {
  if (graphs_.empty() || AnyCaptures()) return;
  const std::shared_ptr<Capture> graph = graphs_[Below(graphs_.size())];
  // Other streams may use the memory that its pool allocated.
  for (std::size_t s = 0; s < kStreams; ++s) {
    if (s != graph->origin) Order(s, graph->origin);
  }
  Launch(graph);
  // They also wait before they use it again.
  for (Live& live : live_) {
    if (live.capture == nullptr || live.capture->pool != graph->pool) continue;
    Record(live.ready, graph->origin);
    live.ordered = Bit(graph->origin);
  }
}

void StreamModel::DropGraph() {
  if (!graphs_.empty()) Drop(Below(graphs_.size()));
}

void StreamModel::Drop(std::size_t index) {
  const std::shared_ptr<Capture> capture = graphs_[index];
  std::erase(graphs_, capture);
  has_dropped_ = true;
  Must("GraphExecDestroy",
       [&] { return device().GraphExecDestroy(capture->exec); });
  Must("GraphDestroy", [&] { return device().GraphDestroy(capture->graph); });
  for (Live& live : live_) std::erase(live.users, capture);
  const std::shared_ptr<Pool> pool = capture->pool;
  const bool is_used =
      std::any_of(graphs_.begin(), graphs_.end(),
                  [&](const auto& other) { return other->pool == pool; });
  if (pool->prepared) {
    if (is_used || AnyCaptures() || OneIn(2)) return;
    facade_->RemoveMemoryPoolOfCUDAGraph(pool->id);
    std::erase(pools_, pool);
  }
  GiveEvents(*pool);
}

}  // namespace strata
