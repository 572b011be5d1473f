#include "strata/strategy/bfc/arena/timestamps.h"

namespace strata {

void WaitingList::Link(Block* before, Block* block, Block* after) {
  NoteOf(block).waiting_previous = before;
  NoteOf(block).waiting_next = after;
  NextOf(before) = block;
  PreviousOf(after) = block;
  ++count_;
}

void WaitingList::Append(Block* block) { Link(last_, block, nullptr); }

void WaitingList::Remove(Block* block) {
  BfcNote& note = NoteOf(block);
  if (walk_ == block) walk_ = note.waiting_next;
  NextOf(note.waiting_previous) = note.waiting_next;
  PreviousOf(note.waiting_next) = note.waiting_previous;
  note.waiting_previous = nullptr;
  note.waiting_next = nullptr;
  --count_;
}

void WaitingList::InsertAfter(Block* before, Block* block) {
  Link(before, block, NoteOf(before).waiting_next);
}

void WaitingList::Replace(Block* old, Block* block) {
  InsertAfter(old, block);
  if (walk_ == old) walk_ = block;
  Remove(old);
}

bool WaitingList::IsConsistent() const {
  std::size_t count = 0;
  std::uint64_t stamp = 0;
  const Block* previous = nullptr;
  for (const Block* block = first_; block != nullptr;
       block = NoteOf(block).waiting_next) {
    const BfcNote& note = NoteOf(block);
    if (!block->is_free || note.freed_at == 0) return false;
    if (note.waiting_previous != previous || note.freed_at < stamp) {
      return false;
    }
    stamp = note.freed_at;
    previous = block;
    ++count;
  }
  return previous == last_ && count == count_;
}

}  // namespace strata
