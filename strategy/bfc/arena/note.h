#ifndef STRATA_STRATEGY_BFC_ARENA_NOTE_H_
#define STRATA_STRATEGY_BFC_ARENA_NOTE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <string>

#include "strata/allocation/allocation.h"
#include "strata/allocation/record_slab.h"

namespace strata {

// The annotation of a thread at an allocation
// (allocation/diagnostics/annotation.h). Its holders are the allocation and
// snapshots in progress; the last one destroys it.
//
// Threads: any thread. Hold also under a spin lock.
struct BfcAnnotation {
  // Returns the annotation of the calling thread and holds it for the caller.
  // Null if there is none, or if the host is out of memory.
  static const BfcAnnotation* TakeCurrent() noexcept;
  // Adds or removes one holder. Ignores null.
  static void Hold(const BfcAnnotation* annotation) noexcept;
  static void LetGo(const BfcAnnotation* annotation) noexcept;

  std::string text;  // CurrentAnnotation()
  std::string op;    // AnnotationOp()
  std::int64_t step = -1;
  mutable std::atomic<std::size_t> holders{1};
};

// The end of a two-ended pool that a block belongs to (arena_ends.cc). Without
// two ends, every block is kLower.
enum class BfcEnd : std::uint8_t { kLower, kUpper, kGap };

// Data of a BfcAllocator about a block, besides its record (RecordSlab::Noted).
// Guarded by the allocator's lock.
struct BfcNote {
  std::int64_t allocation_id = -1;  // -1: free
  // As requested of the strategy; 0 while free.
  std::size_t requested_bytes = 0;
  // Count of the timing counter; 0: safe, or in use.
  std::uint64_t freed_at = 0;
  std::uint64_t action = 0;  // Number of the call that made this state.
  // Null while free, or without annotations.
  const BfcAnnotation* annotation = nullptr;
  Block* waiting_previous = nullptr;  // see WaitingList
  Block* waiting_next = nullptr;
  BfcEnd end = BfcEnd::kLower;
};

static_assert(sizeof(BfcNote) <= RecordSlab::kNoteBytes);

inline BfcNote& NoteOf(Block* block) {
  return *std::launder(static_cast<BfcNote*>(RecordSlab::NoteOf(block)));
}
inline const BfcNote& NoteOf(const Block* block) {
  return *std::launder(static_cast<const BfcNote*>(RecordSlab::NoteOf(block)));
}
// Constructs the note of a record that was just taken.
inline void StartNote(Block* block) {
  new (RecordSlab::NoteOf(block)) BfcNote();
}

}  // namespace strata

#endif  // STRATA_STRATEGY_BFC_ARENA_NOTE_H_
