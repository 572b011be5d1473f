#ifndef STRATA_ALLOCATION_ALLOCATOR_H_
#define STRATA_ALLOCATION_ALLOCATOR_H_

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "strata/allocation/allocation.h"
#include "strata/allocation/failure.h"
#include "strata/allocation/hit/hit_path.h"
#include "strata/allocation/request.h"
#include "strata/allocation/stats.h"
#include "strata/allocation/visitor.h"
#include "strata/platform/stream.h"

namespace strata {

class AllocationLog;
class DebugFill;
class Reclaimer;

// One layer of a chain; also the contract of every layer.
//
// Model: users call the non-virtual functions of the outermost layer. Each
//   layer calls the virtual functions of the layer below it. Almost every
//   virtual function is pure, so that a layer that does not forward a call
//   fails to compile. The exceptions are returns_handles(), RecordUse(),
//   system_size(), unserved_flags(), unreturned_bytes() and AppendUnreturned().
// Threads: any thread may call any function, concurrently.
// Lifetime: outlives every Allocation it made. The chains of a facade ensure
//   this.
class Allocator {
 public:
  Allocator() = default;
  Allocator(const Allocator&) = delete;
  Allocator& operator=(const Allocator&) = delete;
  virtual ~Allocator() = default;

  // ---- For users of the outermost layer.

  // Allocates memory for `request`.
  //
  // Errors: OutOfMemory or BadAlloc (both std::bad_alloc) if the request cannot
  //   be met; std::invalid_argument if its alignment is wrong; DeviceError if a
  //   device call failed. After an error, memory in use is unchanged.
  // Cost: the sum of the layers. When memory is exhausted, also the steps of
  //   the Reclaimer.
  AllocationPtr Allocate(const Request& request);
  AllocationPtr Allocate(std::size_t bytes) { return Allocate(Request{bytes}); }

  // Like Allocate(), but does not throw. On failure returns null and stores the
  // reason in `failure`.
  AllocationPtr AllocateOrNull(const Request& request,
                               Failure& failure) noexcept;

  // Frees `allocation`, as the destructor of AllocationPtr does. Ignores null.
  void Free(AllocationPtr allocation) noexcept { allocation.reset(); }
  // Frees an allocation that was last used on `stream`. If `stream` is not the
  // stream of this chain, its memory is not reused before the work in `stream`
  // completes.
  void Free(AllocationPtr allocation, Stream stream) noexcept;

  // Debug help: this layer fills each Allocation, or synchronises the device,
  // once. Null turns the fill off. `fill` must outlive this layer. Call this
  // before the first allocation.
  virtual void set_debug_fill(const DebugFill* fill) { fill_ = fill; }
  const DebugFill* debug_fill() const { return fill_; }

  // Log in which callers record the purpose of an allocation; null: no log. It
  // must outlive this layer.
  void set_allocation_log(AllocationLog* log) { log_ = log; }
  AllocationLog* allocation_log() const { return log_; }

  // ---- For layers.

  // Tries once, without the Reclaimer. `request.bytes` is not 0, unless this
  // layer returns handles. `request.freed_by` is null. The result is live and
  // its `requested` is set. Its owner is not set, unless kBlockRouted is. On
  // failure returns null, sets `failure`, and changes nothing.
  virtual Allocation* TryAllocate(const Request& request,
                                  Failure& failure) noexcept = 0;
  virtual void DoFree(Allocation* allocation) noexcept = 0;
  // Releases idle memory to the system. Returns the bytes released.
  virtual std::size_t Release() noexcept = 0;
  // Records a use on another stream than the stream of this chain. Call it
  // after submitting the work. Returns false if nothing was recorded: `stream`
  // is the stream of this chain, or no layer keeps records.
  virtual bool RecordStream(Allocation* allocation, Stream stream) noexcept = 0;
  // Records a use that ends when `event` completes. The caller recorded `event`
  // on `stream` after the use. Replaces the record of that stream. The event
  // may be recorded again, or destroyed, at once. A layer without support for
  // events records the stream instead.
  virtual bool RecordUse(Allocation* allocation, Stream stream,
                         Event /*event*/) noexcept {
    return RecordStream(allocation, stream);
  }
  // Removes the record of `stream`: the caller has ordered that use itself.
  virtual void EraseStream(Allocation* allocation, Stream stream) noexcept = 0;
  // Announces that `stream` is about to be destroyed. Its work may still be
  // running.
  virtual void StreamDestroyed(Stream stream) noexcept = 0;

  // Next layer inwards; null at the bottom.
  virtual Allocator* underlying() const = 0;
  virtual const char* name() const = 0;
  virtual Place place() const = 0;
  // Stream that needs no record of its uses; a Stream without uid if there is
  // none.
  virtual Stream stream() const = 0;
  // Largest Request::alignment that this layer serves; then the alignment of
  // every result. In bytes.
  virtual std::size_t max_alignment() const = 0;
  virtual std::size_t natural_alignment() const = 0;
  virtual Stats stats() const = 0;
  // Sets the peaks to the current values.
  virtual void ResetPeak() = 0;
  virtual void Accept(AllocatorVisitor& visitor) const = 0;
  // Handler of exhausted memory; null: none.
  virtual Reclaimer* reclaimer() const = 0;
  // Null if this layer must see every call.
  virtual HitPath* hit_path() = 0;
  // True if data() of an Allocation is a handle of the system below instead of
  // an address. Then no code may compute with it, and a request of 0 bytes is
  // passed on like any other. A strategy cannot split memory without addresses.
  // So only layers that pass requests on unchanged need to forward this call.
  virtual bool returns_handles() const { return false; }
  // The size of the piece of memory that the system returns for a request of
  // `bytes`: the next multiple of system_size(1), a power of two.
  virtual std::size_t system_size(std::size_t bytes) const {
    return underlying() != nullptr ? underlying()->system_size(bytes) : bytes;
  }
  // The RequestFlags about memory that this layer cannot serve. A request with
  // a flag that some layer of the chain cannot serve is a bad request.
  virtual std::uint32_t unserved_flags() const { return 0; }
  // Freed memory that the system below refused to take back. This layer still
  // holds it; Release() offers it again. In bytes.
  virtual std::size_t unreturned_bytes() const { return 0; }
  // Appends the blocks of unreturned_bytes() to `blocks`.
  //
  // Errors: std::bad_alloc.
  virtual void AppendUnreturned(std::vector<BlockInfo>& /*blocks*/) const {}

 protected:
  // Assigns `allocation` to the user: sets the owner and applies the debug
  // fill. If the fill fails, frees the allocation, sets `failure` and returns
  // null.
  Allocation* Adopt(Allocation* allocation, Failure& failure) noexcept;
  Allocation* AllocateRecord(const Request& request, Failure& failure) noexcept;
  // The failure of a request that this layer refuses.
  Failure Refusal(Failure::Reason reason, const Request& request,
                  const char* detail = "") const;

 private:
  friend void FreeAllocation(Allocation* allocation) noexcept;

  // Does DoFree() for a block for which the caller has checked IsPlain().
  virtual void FreePlain(Allocation* allocation) noexcept {
    DoFree(allocation);
  }

  Allocation* AllocateZero() noexcept;
  // Calls TryAllocate() with the current value of `request.freed_by`.
  Allocation* Attempt(const Request& request, Failure& failure) noexcept;
  Allocation* Reclaim(const Request& request, Failure& failure) noexcept;
  static void FreeRecord(Allocation* allocation) noexcept;

  const DebugFill* fill_ = nullptr;
  AllocationLog* log_ = nullptr;
};

// Terminates the process unless `block` is live, and names its address and
// state. To free such a block would allocate its memory twice.
[[noreturn]] void FailNotLive(const Block& block, const char* layer);
inline void CheckLive(const Block& block, const char* layer) {
  if ((block.flags & kBlockLive) == 0) FailNotLive(block, layer);
}

// The outermost layer of this name, from `layer` down. Null: there is none.
Allocator* FindLayer(Allocator* layer, std::string_view name) noexcept;
// The layer of the chain that splits chunks: the one above the ChunkPool, else
// the innermost one.
const Allocator& CarvingLayer(const Allocator& chain) noexcept;

}  // namespace strata

#endif  // STRATA_ALLOCATION_ALLOCATOR_H_
