#ifndef STRATA_TESTS_FACADE_GRAPHS_GRAPH_FIXTURE_H_
#define STRATA_TESTS_FACADE_GRAPHS_GRAPH_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "strata/facade/graphs/capture_guard.h"
#include "strata/platform/device_work.h"
#include "strata/tests/facade/facade_fixture.h"

namespace strata {

// A facade on a simulated device that captures. At the end of a test, its
// graphs are destroyed before the facade.
class GraphFixture : public FacadeFixture {
 protected:
  explicit GraphFixture(int devices = 1) : FacadeFixture(devices) {
    MakeEvent();
  }
  explicit GraphFixture(const PlatformOptions& options)
      : FacadeFixture(options) {
    MakeEvent();
  }
  ~GraphFixture() override {
    DropGraphs();
    EXPECT_EQ(device().EventDestroy(event_), Status::kSuccess);
  }

  static Place Here() { return DevicePlace(0); }
  AllocationPtr Alloc(std::size_t bytes, const Stream& stream) {
    return facade().Alloc(Here(), bytes, stream);
  }
  std::size_t Reserved() { return facade().GetStats(Here()).reserved_bytes; }

  // Work in `stream` that writes the whole allocation.
  void Use(const AllocationPtr& allocation, const Stream& stream) {
    const WorkRange range{reinterpret_cast<DevicePtr>(allocation->data()),
                          allocation->size() / 8 * 8, true};
    EXPECT_EQ(platform_->work(0)->Enqueue(stream, &range, 1, 0, 1),
              Status::kSuccess);
  }
  // `later` waits for the work submitted to `earlier`. Both are captured, or
  // neither.
  void Join(const Stream& earlier, const Stream& later) {
    EXPECT_EQ(device().EventRecord(event_, earlier, 0), Status::kSuccess);
    EXPECT_EQ(device().StreamWaitEvent(later, event_, 0), Status::kSuccess);
  }

  // Ends the capture. The graph and its executable graph live until DropGraphs.
  GraphExec Finish(CaptureGuard& guard) {
    graphs_.push_back(guard.End());
    GraphExec exec;
    EXPECT_EQ(device().GraphInstantiate(&exec, graphs_.back(), 0),
              Status::kSuccess);
    execs_.push_back(exec);
    return exec;
  }
  void Launch(GraphExec exec, const Stream& stream) {
    EXPECT_EQ(device().GraphLaunch(exec, stream), Status::kSuccess);
  }
  void DropGraphs() {
    for (const GraphExec& exec : execs_) {
      EXPECT_EQ(device().GraphExecDestroy(exec), Status::kSuccess);
    }
    for (const Graph& graph : graphs_) {
      EXPECT_EQ(device().GraphDestroy(graph), Status::kSuccess);
    }
    execs_.clear();
    graphs_.clear();
    // The device releases user objects only at its next call.
    std::size_t free_bytes = 0;
    std::size_t total_bytes = 0;
    device().MemGetInfo(&free_bytes, &total_bytes);
  }
  // Makes the facade notice the end of graphs.
  void Sweep() {
    facade().RemoveMemoryPoolOfCUDAGraph(
        facade().PrepareMemoryPoolForCUDAGraph());
  }
  // Likewise, and releases everything idle.
  void Release() { facade().Release(Here()); }

 private:
  // In advance: a capture may forbid the creation of events.
  void MakeEvent() {
    EXPECT_EQ(device().EventCreate(&event_, kEventDisableTiming),
              Status::kSuccess);
  }

  Event event_;
  std::vector<Graph> graphs_;
  std::vector<GraphExec> execs_;
};

}  // namespace strata

#endif  // STRATA_TESTS_FACADE_GRAPHS_GRAPH_FIXTURE_H_
