#ifndef STRATA_ALLOCATION_ALLOCATOR_H_
#define STRATA_ALLOCATION_ALLOCATOR_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/allocation/allocation.h"
#include "strata/allocation/failure.h"
#include "strata/allocation/hit_path.h"
#include "strata/allocation/request.h"
#include "strata/allocation/stats.h"
#include "strata/allocation/visitor.h"
#include "strata/platform/stream.h"

namespace strata {

class AllocationLog;
class DebugFill;
class Reclaimer;

// One layer of a chain, and the contract of all of them.
//
// Model: users call the non-virtual functions of the outermost layer; layers
//   call the virtual ones of the layer below. Every virtual function but
//   returns_handles(), RecordUse(), unserved_flags() and those of unreturned
//   memory is pure, so that a layer that forgets to forward one does not
//   compile.
// Threads: every function from any thread, concurrently.
// Lifetime: outlives every Allocation it made (chains of a facade see to that
//   themselves).
class Allocator {
 public:
  Allocator() = default;
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;
  virtual ~Allocator() = default;

  // ---- For users of the outermost layer.

  // Errors: OutOfMemory or BadAlloc (both std::bad_alloc) if the request cannot
  //   be met, std::invalid_argument if it is wrong (alignment), DeviceError if
  //   a device call failed; then nothing in use has changed.
  // Cost: see the layers; when memory is exhausted, the Reclaimer's steps.
  AllocationPtr Allocate(const Request& request);
  AllocationPtr Allocate(std::size_t bytes) { return Allocate(Request{bytes}); }

  // The same without exceptions: null, and the reason in `failure`.
  AllocationPtr AllocateOrNull(const Request& request,
                               Failure& failure) noexcept;

  // What the destructor of AllocationPtr does. Null is ignored.
  void Free(AllocationPtr allocation) noexcept { allocation.reset(); }
  // For an allocation last used on `stream`: if that is not this chain's
  // stream, its memory is not reused before the work in `stream` is done.
  void Free(AllocationPtr allocation, Stream stream) noexcept;

  // Debug help: every Allocation is filled, or the device synchronised, once,
  // by this layer. Null turns it off. `fill` must outlive this layer; set it
  // before the first allocation.
  virtual void set_debug_fill(const DebugFill* fill) { fill_ = fill; }
  const DebugFill* debug_fill() const { return fill_; }

  // Where those who know what an allocation is for record it; null: nowhere.
  // The log outlives this layer.
  void set_allocation_log(AllocationLog* log) { log_ = log; }
  AllocationLog* allocation_log() const { return log_; }

  // ---- For layers.

  // One attempt, without reaction to exhaustion. `request.bytes` is not 0,
  // unless this returns handles; `request.freed_by` is null. The
  // result is live, has `requested` set and, unless kBlockRouted is, no owner.
  // On null, `failure` says why and nothing has changed.
  virtual Allocation* TryAllocate(const Request& request,
                                  Failure& failure) noexcept = 0;
  virtual void DoFree(Allocation* allocation) noexcept = 0;
  // Gives idle memory back to the system; returns the bytes given.
  virtual std::size_t Release() noexcept = 0;
  // Notes a use on another stream than this chain's; call it after the work
  // was submitted. False if there is nothing to note: it is this chain's own
  // stream, or no layer keeps notes.
  virtual bool RecordStream(Allocation* allocation, Stream stream) noexcept = 0;
  // The same for a use that is over once `event` is, which the caller recorded
  // on `stream` after it: replaces the note of that stream. The event may be
  // recorded again, or destroyed, at once. A layer that knows nothing of events
  // notes the stream.
  virtual bool RecordUse(Allocation* allocation, Stream stream,
                         Event /*event*/) noexcept {
    return RecordStream(allocation, stream);
  }
  // Takes such a note back: the caller has ordered that use itself.
  virtual void EraseStream(Allocation* allocation, Stream stream) noexcept = 0;
  // `stream` is about to be destroyed; work in it may still be running.
  virtual void StreamDestroyed(Stream stream) noexcept = 0;

  // The next layer inwards; null at the bottom.
  virtual Allocator* underlying() const = 0;
  virtual const char* name() const = 0;
  virtual Place place() const = 0;
  // The stream whose work needs no note; a Stream without uid if there is none.
  virtual Stream stream() const = 0;
  // The largest Request::alignment served; what every result is aligned to.
  virtual std::size_t max_alignment() const = 0;
  virtual std::size_t natural_alignment() const = 0;
  virtual Stats stats() const = 0;
  // Sets peaks to the current values.
  virtual void ResetPeak() = 0;
  virtual void Accept(AllocatorVisitor& visitor) const = 0;
  // Who reacts when memory is exhausted; null: nobody.
  virtual Reclaimer* reclaimer() const = 0;
  // Null if this layer must see every call.
  virtual HitPath* hit_path() = 0;
  // Whether data() of an Allocation is a handle of the system below instead of
  // an address: nobody may compute with it, and a request of 0 bytes is one
  // like any other. Memory without addresses cannot be carved, so it is right
  // that only a layer that passes requests on asks the one below.
  virtual bool returns_handles() const { return false; }
  // The RequestFlags about memory that this layer cannot serve; a request with
  // one that any layer of the chain cannot serve is a bad request.
  virtual std::uint32_t unserved_flags() const { return 0; }
  // Freed memory that the system below has refused to take back, and that
  // Release offers it again: it is held all the same.
  virtual std::size_t unreturned_bytes() const { return 0; }
  // The same, block by block, added to `blocks`. Errors: std::bad_alloc.
  virtual void AppendUnreturned(std::vector<BlockInfo>& /*blocks*/) const {}

 protected:
  // Makes `allocation` the user's: owner, debug fill. Null if the fill failed;
  // then the allocation is freed and `failure` says why.
  Allocation* Adopt(Allocation* allocation, Failure& failure) noexcept;
  Allocation* AllocateRecord(const Request& request, Failure& failure) noexcept;

 private:
  friend void FreeAllocation(Allocation* allocation) noexcept;

  // DoFree of what IsPlain, for who has looked.
  virtual void FreePlain(Allocation* allocation) noexcept {
    DoFree(allocation);
  }

  Allocation* AllocateZero() noexcept;
  // TryAllocate, with what `request.freed_by` says now.
  Allocation* Attempt(const Request& request, Failure& failure) noexcept;
  Allocation* Reclaim(const Request& request, Failure& failure) noexcept;
  static void FreeRecord(Allocation* allocation) noexcept;

  const DebugFill* fill_ = nullptr;
  AllocationLog* log_ = nullptr;
};

// Fails the process, naming the address and state, unless `block` is live:
// freeing it would hand its memory out twice.
[[noreturn]] void FailNotLive(const Block& block, const char* layer);
inline void CheckLive(const Block& block, const char* layer) {
  if ((block.flags & kBlockLive) == 0) FailNotLive(block, layer);
}

}  // namespace strata

#endif  // STRATA_ALLOCATION_ALLOCATOR_H_
