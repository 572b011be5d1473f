#ifndef STRATA_FACADE_GRAPHS_CAPTURE_GUARD_H_
#define STRATA_FACADE_GRAPHS_CAPTURE_GUARD_H_

#include "strata/facade/allocator_facade.h"
#include "strata/facade/graphs/graph_pool_id.h"
#include "strata/platform/device.h"
#include "strata/platform/memory_types.h"
#include "strata/platform/stream.h"

namespace strata {

// Captures a stream, with memory from a graph pool, for one scope.
//
// Model: the capture begins with the guard. End() ends it and returns the
//   graph, which holds the pool from then on (AllocatorFacade::KeepForGraph). A
//   guard that is destroyed before End() ends the capture and destroys its
//   graph. The guard is a user of the pool, so a pool without other users lives
//   exactly as long as its graphs.
// Errors: the constructor throws DeviceError if the capture cannot begin, and
//   as AllocatorFacade::PrepareMemoryPoolForCUDAGraph; then no capture is
//   announced.
// Threads: one; the thread of the constructor, unless `mode` is relaxed.
// Lifetime: the facade outlives it.
// Source: cuda_semantics.md C1-C4, C29, C33.
class [[nodiscard]] CaptureGuard {
 public:
  // `pool` 0: creates a pool.
  CaptureGuard(AllocatorFacade& facade, Stream stream, GraphPoolId pool = 0,
               CaptureMode mode = CaptureMode::kThreadLocal);
  CaptureGuard(const CaptureGuard&) = delete;
  CaptureGuard& operator=(const CaptureGuard&) = delete;
  ~CaptureGuard();

  GraphPoolId pool() const { return announcement_.pool; }
  // Ends the capture and returns its graph. The caller destroys the graph.
  //
  // Errors: DeviceError if the capture failed, or the graph cannot hold the
  //   pool; then there is no graph. std::logic_error if the capture has ended
  //   already.
  Graph End();

 private:
  void DestroyGraph(Graph graph) noexcept;

  AllocatorFacade& facade_;
  Device& device_;
  const Stream stream_;
  const AllocatorFacade::Announcement announcement_;
  bool is_capturing_ = false;
};

}  // namespace strata

#endif  // STRATA_FACADE_GRAPHS_CAPTURE_GUARD_H_
