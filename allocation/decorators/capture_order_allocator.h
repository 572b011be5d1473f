#ifndef STRATA_ALLOCATION_DECORATORS_CAPTURE_ORDER_ALLOCATOR_H_
#define STRATA_ALLOCATION_DECORATORS_CAPTURE_ORDER_ALLOCATOR_H_

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "strata/allocation/decorator.h"
#include "strata/allocation/streams/chain_stream.h"
#include "strata/platform/device.h"

namespace strata {

// True if every node of `earlier` is a node of `later`, or precedes one by the
// edges of the graph. Then work submitted after `later` runs after `earlier` at
// every launch.
//
// Errors: false if the device calls fail or the host is out of memory.
// Cost: a device call per node between the two.
bool AllPrecede(Device& device, const std::vector<GraphNode>& earlier,
                const std::vector<GraphNode>& later) noexcept;

// Sets `nodes` to the nodes on which the next work in `stream` would depend.
// Returns false if the stream is not capturing or if a device call failed; the
// latter sets `unknown`.
bool CaptureFrontier(Device& device, const Stream& stream,
                     std::vector<GraphNode>* nodes,
                     bool* unknown = nullptr) noexcept;

// Orders the reuse of memory inside captures. This layer of a graph pool's
// chain replaces the StreamSafeAllocator of other chains.
//
// Model: the chain serves one stream. A block that only this stream used may be
//   reused at once. A block recorded for other capturing streams is reused when
//   their captured work at the free precedes the next work of this stream. At
//   the latest it is reused at the end of the capture, because all streams have
//   joined by then. No event is recorded or queried.
// Threads: any thread.
// Cost: none for blocks without marks. Each request that finds no other block
//   checks the marked blocks again.
// Lifetime: as the pool. Releases nothing to the system before it is destroyed,
//   because launches may use memory that is free here.
// Source: cuda_semantics.md K2, K3.
class CaptureOrderAllocator final : public Decorator {
 public:
  CaptureOrderAllocator(std::shared_ptr<Allocator> underlying,
                        std::shared_ptr<ChainStream> own);
  ~CaptureOrderAllocator() override;

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;
  // Always 0; see Lifetime.
  std::size_t Release() noexcept override { return 0; }
  bool RecordStream(Allocation* allocation, Stream stream) noexcept override;
  // Records the stream: an event does not order captured work.
  bool RecordUse(Allocation* allocation, Stream stream,
                 Event /*event*/) noexcept override {
    return RecordStream(allocation, stream);
  }
  void EraseStream(Allocation* allocation, Stream stream) noexcept override;
  // Marks of the stream stay valid: its captured work is read now. Waits for
  // frees of other threads that are querying the stream.
  void StreamDestroyed(Stream stream) noexcept override;
  const char* name() const override { return "capture_order"; }

  // The capture has ended: all its streams have joined, or its work never runs.
  void CaptureEnded() noexcept;

 private:
  struct Marked {
    Allocation* allocation = nullptr;
    std::vector<Stream> streams;
    // Nodes of `streams` at the free, and of streams destroyed before.
    std::vector<GraphNode> frontier;
    // The nodes could not be read: wait for the end of the capture.
    bool unknown = false;
  };
  using List = std::list<Marked>;

  // Notes the captured work of a stream that ends, for the blocks it marked.
  void NoteEnd(const Stream& stream) noexcept;
  // Defers `freed`, unless there is nothing to wait for or a capture has ended
  // since there were `ended` of them.
  void Defer(List* freed, std::uint64_t ended) noexcept;
  void TakeReady(List* ready) noexcept;
  void GiveAll(List* ready) noexcept;

  const std::shared_ptr<ChainStream> own_;
  std::mutex mutex_;
  List marked_;  // live; guarded by mutex_
  // guarded by mutex_
  std::unordered_map<const Block*, List::iterator> by_block_;
  List deferred_;            // freed; guarded by mutex_
  std::uint64_t ended_ = 0;  // number of ended captures; guarded by mutex_
  // Number of frees that may still query streams of a mark that left the lists.
  std::atomic<int> asking_{0};
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_DECORATORS_CAPTURE_ORDER_ALLOCATOR_H_
