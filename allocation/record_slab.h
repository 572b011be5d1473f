#ifndef STRATA_ALLOCATION_RECORD_SLAB_H_
#define STRATA_ALLOCATION_RECORD_SLAB_H_

#include <cstddef>

#include "strata/allocation/allocation.h"
#include "strata/base/fork_lock.h"
#include "strata/platform/locks/spin_lock.h"

namespace strata {

// The source of every record in the process.
//
// Model: pages of records that are split once and never freed. So the last free
//   of a destroyed chain still finds its record. A page holds 1024 records.
//   When there are enough records to fill 2 MiB, new pages are 2 MiB, huge
//   pages if the system has them. An entry of the address cache then covers 512
//   times as many records. There are two slabs: one of bare records, and one of
//   records with a note, for holders that store more about a block. A record
//   returns to the slab it came from.
// Threads: any thread.
// Cost: one lock; a heap call if no record is left. Layers that serve hits fill
//   a List of their own in advance.
class RecordSlab {
 public:
  // A list of records linked by Block::next. It has no lock of its own.
  class List {
   public:
    bool empty() const { return head_ == nullptr; }
    std::size_t size() const { return size_; }
    // The record that Pop() returns next, linked by `next` to the others; null
    // if empty.
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

  static RecordSlab& Instance();
  static RecordSlab& Noted();

  // The note behind a record of Noted(): raw memory for the holder of the
  // record. It is on the cache line that the processor fetches together with
  // the record.
  static constexpr std::size_t kNoteBytes = 64;
  static void* NoteOf(Block* record) { return record + 1; }
  static const void* NoteOf(const Block* record) { return record + 1; }

  // Returns a blank record, or null if the host is out of memory.
  Block* Take() noexcept;
  // Blanks `record` and stores it.
  void Give(Block* record) noexcept;

  // Moves records into `list` until it holds `count`. Returns false if the host
  // is out of memory; `list` then keeps the records it received.
  bool Fill(List& list, std::size_t count) noexcept;
  // Like Fill(), but makes no heap call: moves the records that the slab has.
  void FillFromStock(List& list, std::size_t count) noexcept;
  // Returns the records of `list`, which must be blank, to the slab.
  void Drain(List& list) noexcept;

  // Records taken and not returned. For leak checks.
  std::size_t taken() const;

 private:
  static constexpr std::size_t kRecordsPerPage = 1024;

  explicit RecordSlab(std::size_t note_bytes)
      : stride_bytes_(sizeof(Allocation) + note_bytes) {}
  // Allocates a page. Call it if the stock and the current page are empty.
  // Returns false if there is no memory.
  bool AddPage() noexcept;

  const std::size_t stride_bytes_;  // from one record to the next
  mutable SpinLock lock_;
  const ForkLock fork_lock_{lock_};
  // The members below are guarded by lock_.
  List stock_;
  // Unused rest of the newest page: records that were never taken.
  std::byte* page_ = nullptr;
  std::size_t page_bytes_ = 0;
  std::size_t taken_ = 0;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_RECORD_SLAB_H_
