#ifndef STRATA_ALLOCATION_RECORD_SLAB_H_
#define STRATA_ALLOCATION_RECORD_SLAB_H_

#include <cstddef>

#include "strata/allocation/allocation.h"
#include "strata/platform/fork_lock.h"
#include "strata/platform/spin_lock.h"

namespace strata {

// Records linked through Block::next; a value without a lock of its own.
class RecordList {
 public:
  bool empty() const { return head_ == nullptr; }
  std::size_t size() const { return size_; }
  // The one that Pop takes, linked by `next` to those behind it; null: empty.
  const Block* first() const { return head_; }

  void Push(Block* record) {
    record->next = head_;
    head_ = record;
    ++size_;
  }
  Block* Pop() {
    Block* record = head_;
    if (record != nullptr) {
      head_ = record->next;
      --size_;
    }
    return record;
  }

 private:
  Block* head_ = nullptr;
  std::size_t size_ = 0;
};

// The source of every record in the process.
//
// Model: pages of records, carved once and recycled for ever, so that the last
//   free of a dropped chain still has its record. They are of 1024 records, and
//   of 2 MiB, huge ones if the system has them, once there are as many records
//   as would fill one: which record comes next is anybody's guess then, and an
//   entry of the address cache covers 512 times as many. There are two: one of
//   bare records, one whose records have a note behind them, for holders that
//   must remember more of a block than its record says. A record goes back to
//   the slab it came from.
// Threads: any thread.
// Cost: one lock; a page from the heap when no record is left. Layers that
//   serve hits keep a RecordList of their own, filled ahead.
class RecordSlab {
 public:
  static RecordSlab& Instance();
  static RecordSlab& Noted();

  // The note behind a record of Noted(): raw memory, for its holder to make
  // something of. On the line that the processor fetches together with the
  // record's.
  static constexpr std::size_t kNoteBytes = 64;
  static void* NoteOf(Block* record) { return record + 1; }
  static const void* NoteOf(const Block* record) { return record + 1; }

  // A blank record, or null if the host is out of memory.
  Block* Take() noexcept;
  // Blanks `record` and keeps it.
  void Give(Block* record) noexcept;

  // The memory of a record, for its holder to make something of; null if the
  // host is out of memory. And back, when nothing is in it any more.
  void* TakeMemory() noexcept { return Take(); }
  void GiveMemory(void* memory) noexcept;

  // Moves records into `list` until it holds `count`. False if the host is out
  // of memory; `list` keeps what it got.
  bool Fill(RecordList& list, std::size_t count) noexcept;
  // The same without asking the heap: what the slab has.
  void FillFromStock(RecordList& list, std::size_t count) noexcept;
  // Takes back what is in `list`, blank.
  void Drain(RecordList& list) noexcept;

  // Records handed out and not given back. For leak checks.
  std::size_t taken() const;

 private:
  static constexpr std::size_t kRecordsPerPage = 1024;

  explicit RecordSlab(std::size_t note_bytes)
      : stride_bytes_(sizeof(Allocation) + note_bytes) {}
  // For who found neither stock nor page. False: no memory.
  bool AddPage() noexcept;

  const std::size_t stride_bytes_;  // from one record to the next
  mutable SpinLock lock_;
  const ForkLock fork_lock_{lock_};
  // All below: guarded by lock_.
  RecordList stock_;
  // What is left of the newest page: records that were never used.
  std::byte* page_ = nullptr;
  std::size_t page_bytes_ = 0;
  std::size_t taken_ = 0;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_RECORD_SLAB_H_
