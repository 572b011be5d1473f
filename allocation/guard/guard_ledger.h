#ifndef STRATA_ALLOCATION_GUARD_GUARD_LEDGER_H_
#define STRATA_ALLOCATION_GUARD_GUARD_LEDGER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "strata/allocation/allocation.h"
#include "strata/allocation/stats.h"
#include "strata/platform/stream.h"

namespace strata {

// Annotation of a thread, stored without a heap call.
struct GuardNote {
  std::int64_t step = -1;
  std::array<char, 120> text{};  // the inner frames, if not all fit

  void Write() noexcept;
  // "step 3: train / MatMul"; "(no annotation)" if there is none.
  std::string ToString() const;
};

// Data of the Guard layer about one block: the record that the user holds, and
// the memory.
struct GuardRecord {
  enum class State : std::uint8_t { kLive, kFreeing, kQuarantined, kDropped };

  Block* block = nullptr;        // record that the user holds
  Allocation* memory = nullptr;  // from the layer below
  std::byte* data = nullptr;     // address of the user, inside `memory`
  std::size_t bytes = 0;         // requested size
  // Links of the list of all blocks. Guarded by the mutex of the ledger, as are
  // `state` and `pins`.
  GuardRecord* newer = nullptr;
  GuardRecord* older = nullptr;
  // Link of the quarantine, or of the list of spare records.
  GuardRecord* next = nullptr;
  // Streams of RecordStream(); guarded by the same lock.
  std::vector<Stream> marks;
  // Checks in progress, during which the memory must stay.
  std::uint32_t pins = 0;
  State state = State::kLive;
  // True if a marked stream was capturing; guarded by the same lock.
  bool of_graph = false;
  bool zoned = false;  // the zones around the block are written
  // For a block in quarantine. `ordered`: the work in all its streams is
  // ordered before the next operation of the guard. `poisoned`: the block was
  // filled at its free.
  bool ordered = false;
  bool poisoned = false;
  GuardNote allocated;
  GuardNote freed;
};

static_assert(sizeof(GuardRecord) - 2 * sizeof(GuardNote) <= 128);

// The blocks of one Guard layer: a list of all blocks by age, the quarantine in
// the order of the frees, and the counts of the user's allocations.
//
// Model: a block is live, then being freed, then in quarantine until
//   TakeOldest(), or dropped. TakeOldest() skips pinned blocks.
// Threads: any thread.
// Cost: one short lock per call. Only Take() and AddMark() may call the heap.
class GuardLedger {
 public:
  GuardLedger() = default;
  GuardLedger(const GuardLedger&) = delete;
  GuardLedger& operator=(const GuardLedger&) = delete;

  // Returns a record with a Block of its own; null if the host is out of
  // memory.
  GuardRecord* Take() noexcept;
  // Returns a record that is in no list to the spare records, and its Block to
  // the slab.
  void Give(GuardRecord* record) noexcept;

  void AddLive(GuardRecord* record) noexcept;
  void CountFailure() noexcept;
  // Stores the annotation of the freeing thread. Returns false if the record is
  // not live: it was freed before.
  bool BeginFree(GuardRecord& record) noexcept;
  void Quarantine(GuardRecord& record) noexcept;
  // BeginDrop() and EndDrop() replace Quarantine() for a block that is freed at
  // once: call BeginDrop() before the layer below frees the memory, EndDrop()
  // after it. Checks that begin in between skip the block. The record becomes
  // spare when no check pins it.
  void BeginDrop(GuardRecord& record) noexcept;
  void EndDrop(GuardRecord& record) noexcept;
  // Removes and returns the block that was freed first, if more than
  // `keep_bytes` are in quarantine; else returns null.
  GuardRecord* TakeOldest(std::size_t keep_bytes) noexcept;
  std::size_t quarantine_bytes() const noexcept;

  // Marks a live record: a graph may use its block from now on.
  void NoteGraph(GuardRecord& record) noexcept;
  bool IsOfGraph(const GuardRecord& record) const noexcept;
  // Returns false if the record is not live. Errors: std::bad_alloc.
  bool AddMark(GuardRecord& record, Stream stream);
  void RemoveMark(GuardRecord& record, Stream stream) noexcept;
  // Stores the mark number `index` in `stream`. Returns false if there are
  // fewer.
  bool MarkAt(const GuardRecord& record, std::size_t index,
              Stream* stream) const noexcept;
  // AnyMark() and RemoveMarks() apply to the marks of all live records.
  bool AnyMark(Stream stream) const noexcept;
  void RemoveMarks(Stream stream) noexcept;

  // Visit all blocks from the newest to the oldest. Each is pinned until the
  // next call. The end is null. Blocks added during the visit are skipped.
  GuardRecord* PinNewest() noexcept;
  GuardRecord* PinOlder(GuardRecord* pinned) noexcept;
  GuardRecord::State StateOf(const GuardRecord& record) const noexcept;

  // Requests and bytes of users.
  Stats stats() const noexcept;
  void ResetPeak() noexcept;

 private:
  // Need mutex_. Unpin() returns true if the caller must return the record with
  // Give().
  void Unlink(GuardRecord& record) noexcept;
  bool Unpin(GuardRecord& record) noexcept;

  mutable std::mutex mutex_;
  // All records; guarded by mutex_, as are the members below.
  std::deque<GuardRecord> records_;
  GuardRecord* spare_ = nullptr;   // linked by `next`
  GuardRecord* newest_ = nullptr;  // of all blocks
  GuardRecord* first_freed_ = nullptr;
  GuardRecord* last_freed_ = nullptr;
  std::size_t quarantine_bytes_ = 0;
  Stats stats_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_GUARD_GUARD_LEDGER_H_
