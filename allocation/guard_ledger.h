#ifndef STRATA_ALLOCATION_GUARD_LEDGER_H_
#define STRATA_ALLOCATION_GUARD_LEDGER_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "strata/allocation/allocation.h"
#include "strata/allocation/stats.h"
#include "strata/platform/spin_lock.h"
#include "strata/platform/stream.h"

namespace strata {

// What a thread was doing, written down without a heap call.
struct GuardNote {
  std::int64_t step = -1;
  std::array<char, 120> text{};  // the inner frames, if it is too short for all

  void Write() noexcept;
  // "step 3: train / MatMul"; "(no annotation)" if there was none.
  std::string ToString() const;
};

// What the Guard layer knows of one block: its user's record and the memory
// behind it.
struct GuardRecord {
  enum class State : std::uint8_t { kLive, kFreeing, kQuarantined, kDropped };

  Block* block = nullptr;        // what the user holds
  Allocation* memory = nullptr;  // from the layer below
  std::byte* data = nullptr;     // of the user, within `memory`
  std::size_t bytes = 0;         // as asked for
  // All blocks of the ledger; guarded by its lock, as `state` and `pins`.
  GuardRecord* newer = nullptr;
  GuardRecord* older = nullptr;
  GuardRecord* next = nullptr;  // in the quarantine, or among the spare ones
  // Streams that RecordStream named; guarded by the same lock.
  std::vector<Stream> marks;
  std::uint32_t pins = 0;  // checks under way: the memory must stay
  State state = State::kLive;
  bool of_graph = false;  // a stream of the marks captured; by the same lock
  bool zoned = false;     // the zones around the block are written
  // Of a block in quarantine: the work in all its streams is ordered before
  // what the guard does; it was filled when it was freed.
  bool ordered = false;
  bool poisoned = false;
  GuardNote allocated;
  GuardNote freed;
};

static_assert(sizeof(GuardRecord) - 2 * sizeof(GuardNote) <= 128);

// The blocks of one Guard layer: all of them by age, the freed ones in
// quarantine in the order of their frees, and what users hold in numbers.
//
// Model: a block is live, then being freed, then in quarantine until
//   TakeOldest, or dropped. A pinned one is passed over by TakeOldest.
// Threads: any thread.
// Cost: one short lock per call. Records come from pages that are kept; only
//   Take and AddMark may ask the heap.
class GuardLedger {
 public:
  GuardLedger() = default;
  GuardLedger(const GuardLedger&) = delete;
  GuardLedger& operator=(const GuardLedger&) = delete;
  ~GuardLedger();

  // A record with a Block of its own; null if the host is out of memory.
  GuardRecord* Take() noexcept;
  // Of a record that is in no list: its Block goes back too.
  void Give(GuardRecord* record) noexcept;

  void AddLive(GuardRecord* record) noexcept;
  void CountFailure() noexcept;
  // Notes who frees it. False if it is not live: it was freed before.
  bool BeginFree(GuardRecord& record) noexcept;
  void Quarantine(GuardRecord& record) noexcept;
  // Instead, around giving the memory below: checks that begin meanwhile pass
  // the block over. Its record goes back when no check has it any more.
  void BeginDrop(GuardRecord& record) noexcept;
  void EndDrop(GuardRecord& record) noexcept;
  // The block that was freed first, out of all lists, if more than `keep_bytes`
  // are in quarantine; else null.
  GuardRecord* TakeOldest(std::size_t keep_bytes) noexcept;
  std::size_t quarantine_bytes() const noexcept;

  // A graph may use the block of the record, which is live, from now on.
  void NoteGraph(GuardRecord& record) noexcept;
  bool IsOfGraph(const GuardRecord& record) const noexcept;
  // False if the record is not live. Errors: std::bad_alloc.
  bool AddMark(GuardRecord& record, Stream stream);
  void RemoveMark(GuardRecord& record, Stream stream) noexcept;
  // The mark number `index`; false if there are fewer.
  bool MarkAt(const GuardRecord& record, std::size_t index,
              Stream* stream) const noexcept;
  // Of all live records.
  bool AnyMark(Stream stream) const noexcept;
  void RemoveMarks(Stream stream) noexcept;

  // A walk over all blocks from the newest to the oldest: each is pinned until
  // the next call. Ends with null. Later blocks are not met.
  GuardRecord* PinNewest() noexcept;
  GuardRecord* PinOlder(GuardRecord* pinned) noexcept;
  GuardRecord::State StateOf(const GuardRecord& record) const noexcept;

  // Requests and bytes as users made them and hold them.
  Stats stats() const noexcept;
  void ResetPeak() noexcept;

 private:
  static constexpr std::size_t kRecordsPerPage = 32;
  struct Page {
    std::array<GuardRecord, kRecordsPerPage> records;
    Page* next = nullptr;
  };

  bool AddPage() noexcept;
  // Hold lock_ for both. The second says whether the record is to be given.
  void Unlink(GuardRecord& record) noexcept;
  bool Unpin(GuardRecord& record) noexcept;

  mutable SpinLock lock_;
  Page* pages_ = nullptr;          // guarded by lock_, as all below
  GuardRecord* spare_ = nullptr;   // linked by `next`
  GuardRecord* newest_ = nullptr;  // of all blocks
  GuardRecord* first_freed_ = nullptr;
  GuardRecord* last_freed_ = nullptr;
  std::size_t quarantine_bytes_ = 0;
  Stats stats_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_GUARD_LEDGER_H_
