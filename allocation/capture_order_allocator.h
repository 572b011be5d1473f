#ifndef STRATA_ALLOCATION_CAPTURE_ORDER_ALLOCATOR_H_
#define STRATA_ALLOCATION_CAPTURE_ORDER_ALLOCATOR_H_

#include <atomic>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "strata/allocation/chain_stream.h"
#include "strata/allocation/decorator.h"
#include "strata/platform/device.h"

namespace strata {

// Whether every node of `earlier` is one of `later` or comes before one, by the
// edges of their graph: what is submitted after `later` then runs after
// `earlier` at every launch.
//
// Errors: false if the device cannot tell, or the host is out of memory.
// Cost: a device call per node between the two.
bool AllPrecede(Device& device, const std::vector<GraphNode>& earlier,
                const std::vector<GraphNode>& later) noexcept;

// What is submitted to `stream` next would depend on `nodes`. False if the
// stream is not capturing, or if the device cannot tell, which `unknown` says.
bool CaptureFrontier(Device& device, const Stream& stream,
                     std::vector<GraphNode>* nodes,
                     bool* unknown = nullptr) noexcept;

// Orders reuse of memory inside captures: the layer of a graph pool's chain in
// the place that StreamSafe has outside.
//
// Model: the chain serves one stream. A block that only this stream used may be
//   used again at once. One that other capturing streams were recorded for is
//   used again when all they had captured at the free comes before what this
//   stream captures next; at the latest when the capture has ended, as all
//   streams have joined by then. No event is recorded or asked for.
// Threads: any thread.
// Cost: nothing for blocks without marks. A marked one is looked at again by
//   each request that finds no other block.
// Lifetime: as the pool. Gives nothing back to the system before it is
//   destroyed: launches may use what is free here.
// Source: cuda_semantics.md K2, K3.
class CaptureOrderAllocator final : public Decorator {
 public:
  CaptureOrderAllocator(std::shared_ptr<Allocator> underlying,
                        std::shared_ptr<ChainStream> own);
  ~CaptureOrderAllocator() override;

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;
  // 0: see above.
  std::size_t Release() noexcept override { return 0; }
  bool RecordStream(Allocation* allocation, Stream stream) noexcept override;
  // An event says nothing of what is captured.
  bool RecordUse(Allocation* allocation, Stream stream,
                 Event /*event*/) noexcept override {
    return RecordStream(allocation, stream);
  }
  void EraseStream(Allocation* allocation, Stream stream) noexcept override;
  // Marks of it stay valid: what it captured is asked for now. Waits for frees
  // of other threads that ask it.
  void StreamDestroyed(Stream stream) noexcept override;
  const char* name() const override { return "capture_order"; }

  // The capture that this stream took part in has ended: every stream of it has
  // joined, or nothing of it will ever run.
  void CaptureEnded() noexcept;

 private:
  struct Marked {
    Allocation* allocation = nullptr;
    std::vector<Stream> streams;
    // Of `streams`, at the free, and of those that are gone.
    std::vector<GraphNode> frontier;
    // The frontier could not be read: wait for the end of the capture.
    bool unknown = false;
  };
  using List = std::list<Marked>;

  // Asks `stream`, which is about to go, for those that it is a mark of.
  void NoteEnd(const Stream& stream) noexcept;
  // Keeps what was freed after the end of capture `ended`, unless nothing has
  // to be waited for or another capture has ended since.
  void Park(List* freed, std::uint64_t ended) noexcept;
  // Moves to `ready` what may be used again.
  void TakeReady(List* ready) noexcept;
  void GiveAll(List* ready) noexcept;

  const std::shared_ptr<ChainStream> own_;
  std::mutex mutex_;
  List marked_;  // live; guarded by mutex_
  std::unordered_map<const Block*, List::iterator> by_block_;  // by mutex_
  List parked_;              // freed; guarded by mutex_
  std::uint64_t ended_ = 0;  // captures; guarded by mutex_
  // Frees that may still ask the streams of a mark that is not listed any more.
  std::atomic<int> asking_{0};
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_CAPTURE_ORDER_ALLOCATOR_H_
