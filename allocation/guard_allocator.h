#ifndef STRATA_ALLOCATION_GUARD_ALLOCATOR_H_
#define STRATA_ALLOCATION_GUARD_ALLOCATOR_H_

#include <cstddef>
#include <memory>

#include "strata/allocation/decorator.h"
#include "strata/allocation/decorator_options.h"
#include "strata/allocation/guard_error.h"
#include "strata/allocation/guard_ledger.h"
#include "strata/allocation/guard_memory.h"
#include "strata/allocation/guard_settings.h"
#include "strata/allocation/reclaimer.h"

namespace strata {

// Finds writes before and after a block, writes to a freed one, and double
// frees, and says where the block was allocated and freed (annotation.h).
//
// Model: a block lies between red zones of known bytes; what the strategy gave
//   beyond the request belongs to the one behind, so size() is what was asked
//   for. A freed block is filled and kept in quarantine, first in, first out;
//   when it leaves, and whenever CheckAll is called, its bytes and zones are
//   compared. All of that is ordered after the work in the chain's stream and
//   in the streams that RecordStream named. stats() counts what users asked for
//   and hold; the layers below count zones and quarantine too. Of handles that
//   are no memory it finds double frees alone.
// Errors: a device call that fails costs the check of a block, never an
//   allocation or a free; GuardReporter says so once.
// Threads: any thread.
// Cost: three fills per allocation and one per free, on the stream. When the
//   quarantine is full, a free waits for the stream and copies a quarter of the
//   quarantine to the host; without one, every free waits. 408 bytes of host
//   memory per block. When memory is exhausted the
//   quarantine is emptied first.
// Source: tf_bfc.md §2 GPUDebugAllocator, GPUNanResetAllocator; paddle.md
// §6.10.
class GuardAllocator final : public Decorator, private ReclaimSource {
 public:
  // Of `context`: the platform, stream, reporter and reclaimer.
  GuardAllocator(std::shared_ptr<Allocator> underlying,
                 const GuardSettings& settings, const ChainContext& context);
  // Compares and frees what is in quarantine.
  ~GuardAllocator() override;

  // Compares the zones of every live block, and the zones and contents of every
  // block in quarantine. Waits for the chain's stream.
  MemoryCheck CheckAll() noexcept;
  // Watched on each side of a block: as asked, rounded up so that the address
  // stays aligned.
  std::size_t red_zone_bytes() const { return settings_.red_zone_bytes; }
  // Freed and kept back; zones included.
  std::size_t quarantine_bytes() const { return ledger_.quarantine_bytes(); }

  Allocation* TryAllocate(const Request& request,
                          Failure& failure) noexcept override;
  void DoFree(Allocation* allocation) noexcept override;
  std::size_t Release() noexcept override;
  bool RecordStream(Allocation* allocation, Stream stream) noexcept override;
  bool RecordUse(Allocation* allocation, Stream stream,
                 Event event) noexcept override;
  void EraseStream(Allocation* allocation, Stream stream) noexcept override;
  void StreamDestroyed(Stream stream) noexcept override;
  const char* name() const override { return "guard"; }
  Stats stats() const override;
  void ResetPeak() override;
  HitPath* hit_path() override { return nullptr; }

 private:
  // Notes a use in `stream` for the checks. False if there is nothing to mark.
  bool BeginMark(Allocation* allocation, Stream stream) noexcept;
  std::size_t ReclaimableBytes(bool of_limit) const noexcept override;
  std::size_t Reclaim(Stream stream, std::size_t bytes) noexcept override;

  // The record of a live block. Null for a block of no bytes, which has none;
  // and for a freed one, which is reported.
  GuardRecord* LiveRecord(const Allocation& allocation) noexcept;
  Allocation* TakeMemory(const Request& padded, Failure& failure) noexcept;
  // Makes `record` the user's view of `memory`.
  void Lay(GuardRecord& record, Allocation* memory, std::size_t front_bytes,
           std::size_t bytes) const noexcept;
  bool WriteZones(const GuardRecord& record) noexcept;
  // False if the work in a stream that uses the block could not be awaited.
  bool OrderAfterMarks(const GuardRecord& record) noexcept;
  bool Poison(const GuardRecord& record) noexcept;
  bool Did(Status status, const char* what) noexcept;

  // Frees the oldest blocks of the quarantine until at most `keep_bytes` are
  // in it; returns the bytes freed.
  std::size_t Drain(std::size_t keep_bytes) noexcept;
  void DrainAboveLimit() noexcept;
  void Check(const GuardRecord& record, GuardRecord::State state,
             MemoryCheck& result) noexcept;
  // Fills in whose block it is.
  void Report(const GuardRecord& record, bool freed, GuardError error) noexcept;

  const GuardSettings settings_;
  GuardMemory memory_;
  std::shared_ptr<GuardReporter> reporter_;
  GuardLedger ledger_;
  Reclaimer::Registration registration_;
};

// The Guard layer of a chain; null if it has none.
GuardAllocator* FindGuard(Allocator* layer);

}  // namespace strata

#endif  // STRATA_ALLOCATION_GUARD_ALLOCATOR_H_
