#ifndef STRATA_ALLOCATION_GUARD_GUARD_ALLOCATOR_H_
#define STRATA_ALLOCATION_GUARD_GUARD_ALLOCATOR_H_

#include <cstddef>
#include <memory>

#include "strata/allocation/decorator.h"
#include "strata/allocation/decorators/decorator_options.h"
#include "strata/allocation/guard/guard_error.h"
#include "strata/allocation/guard/guard_ledger.h"
#include "strata/allocation/guard/guard_memory.h"
#include "strata/allocation/guard/guard_settings.h"
#include "strata/allocation/reclaim/reclaimer.h"

namespace strata {

// Detects writes before and after a block, writes to a freed block, and double
// frees. Reports where the block was allocated and freed (annotation.h).
//
// Model: a block lies between red zones of known bytes. Bytes of the strategy
//   beyond the request belong to the back zone, so size() is the requested
//   size. A freed block is filled and kept in a FIFO quarantine. When it leaves
//   the quarantine, and at each CheckAll(), its bytes and zones are compared.
//   All of this is ordered after the work in the stream of the chain and in the
//   streams of RecordStream(). stats() counts bytes that users requested and
//   hold. The layers below also count zones and quarantine. For handles without
//   memory, only double frees are detected.
// Errors: if a device call fails, the check of a block is skipped. No
//   allocation or free fails for that. GuardReporter logs it once.
// Threads: any thread.
// Cost: three fills per allocation and one per free, on the stream. When the
//   quarantine is full, a free waits for the stream and copies a quarter of the
//   quarantine to the host. Without a quarantine every free waits. 408 bytes of
//   host memory per block. When memory is exhausted, the quarantine is emptied
//   first.
// Source: tf_bfc.md §2 GPUDebugAllocator, GPUNanResetAllocator; paddle.md
//   §6.10.
class GuardAllocator final : public Decorator, private Reclaimer::Source {
 public:
  // Uses the platform, stream, reporter and reclaimer of `context`.
  GuardAllocator(std::shared_ptr<Allocator> underlying,
                 const GuardSettings& settings, const ChainContext& context);
  // Compares and frees the blocks in quarantine.
  ~GuardAllocator() override;

  // Compares the zones of every live block, and the zones and contents of every
  // block in quarantine. Waits for the stream of the chain.
  MemoryCheck CheckAll() noexcept;
  // Bytes on each side of a block: the option, rounded up so that the address
  // stays aligned.
  std::size_t red_zone_bytes() const { return settings_.red_zone_bytes; }
  // Bytes of freed blocks in quarantine, including zones.
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
  // Records a use in `stream` for the checks. Returns false if no mark is
  // needed.
  bool BeginMark(Allocation* allocation, Stream stream) noexcept;
  std::size_t ReclaimableBytes(bool of_limit) const noexcept override;
  std::size_t Reclaim(Stream stream, std::size_t bytes) noexcept override;

  // Returns the record of a live block. Null for a block of 0 bytes, which has
  // no record, and for a freed block, which is reported.
  GuardRecord* LiveRecord(const Allocation& allocation) noexcept;
  Allocation* TakeMemory(const Request& padded, Failure& failure) noexcept;
  // Makes `record` the view that the user has of `memory`.
  void Lay(GuardRecord& record, Allocation* memory, std::size_t front_bytes,
           std::size_t bytes) const noexcept;
  bool WriteZones(const GuardRecord& record) noexcept;
  // Returns false if the work in a stream that uses the block cannot be waited
  // for.
  bool OrderAfterMarks(const GuardRecord& record) noexcept;
  bool Poison(const GuardRecord& record) noexcept;
  bool Did(Status status, const char* what) noexcept;

  // Frees the oldest blocks of the quarantine until at most `keep_bytes`
  // remain. Returns the bytes freed.
  std::size_t Drain(std::size_t keep_bytes) noexcept;
  void DrainAboveLimit() noexcept;
  void Check(const GuardRecord& record, GuardRecord::State state,
             MemoryCheck& result) noexcept;
  // Adds the data of the block to `error` and reports it.
  void Report(const GuardRecord& record, bool freed, GuardError error) noexcept;

  const GuardSettings settings_;
  GuardMemory memory_;
  std::shared_ptr<GuardReporter> reporter_;
  GuardLedger ledger_;
  Reclaimer::Registration registration_;
};

// Returns the Guard layer of a chain; null if there is none.
GuardAllocator* FindGuard(Allocator* layer);

// The reporter that all chains of the place call. Null without strata_guard.
std::shared_ptr<GuardReporter> GuardReporterOf(const DecoratorOptions& options,
                                               const ChainContext& context);

}  // namespace strata

#endif  // STRATA_ALLOCATION_GUARD_GUARD_ALLOCATOR_H_
