#ifndef STRATA_FACADE_CAPTURE_GUARD_H_
#define STRATA_FACADE_CAPTURE_GUARD_H_

#include "strata/facade/allocator_facade.h"
#include "strata/facade/graph_pool_id.h"
#include "strata/platform/device.h"
#include "strata/platform/memory_types.h"
#include "strata/platform/stream.h"

namespace strata {

// Captures a stream, with memory from a graph pool, for one scope.
//
// Model: the capture begins with the guard. End() ends it and gives the graph,
//   which keeps the pool from then on (AllocatorFacade::KeepForGraph); a guard
//   destroyed before that ends the capture and destroys its graph. The guard is
//   a user of the pool, so a pool that nobody else prepared lives exactly as
//   long as its graphs.
// Errors: the constructor throws DeviceError if the capture cannot begin, and
//   as AllocatorFacade::PrepareMemoryPoolForCUDAGraph; then nothing is
//   announced.
// Threads: one; that of the constructor, unless `mode` is relaxed.
// Lifetime: the facade outlives it.
// Source: cuda_semantics.md C1-C4, C29, C33.
class [[nodiscard]] CaptureGuard {
 public:
  // `pool` 0: a new one.
  CaptureGuard(AllocatorFacade& facade, Stream stream, GraphPoolId pool = 0,
               CaptureMode mode = CaptureMode::kThreadLocal);
  CaptureGuard(const CaptureGuard&) = delete;
  CaptureGuard& operator=(const CaptureGuard&) = delete;
  ~CaptureGuard();

  GraphPoolId pool() const { return announcement_.pool; }
  // The graph, which is the caller's to destroy.
  //
  // Errors: DeviceError if the capture failed, or the graph cannot keep the
  //   pool; then there is no graph. std::logic_error if it has ended already.
  Graph End();

 private:
  void DestroyGraph(Graph graph) noexcept;
  void Finish() noexcept;

  AllocatorFacade& facade_;
  Device& device_;
  const Stream stream_;
  const AllocatorFacade::Announcement announcement_;
  bool is_capturing_ = false;
};

}  // namespace strata

#endif  // STRATA_FACADE_CAPTURE_GUARD_H_
