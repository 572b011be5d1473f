#include "strata/allocation/guard/guard_ledger.h"

#include <algorithm>
#include <new>
#include <utility>

#include "strata/allocation/diagnostics/annotation.h"
#include "strata/allocation/record_slab.h"

namespace strata {
namespace {

// Bytes of a block in quarantine. At least 1, so that a handle of 0 bytes does
// not stay for ever.
std::size_t WeightOf(const GuardRecord& record) {
  return std::max<std::size_t>(record.memory->size(), 1);
}

}  // namespace

void GuardNote::Write() noexcept {
  step = AnnotationStep();
  CopyCurrentAnnotation(text.data(), text.size());
}

std::string GuardNote::ToString() const {
  const std::string frames = text.data();
  if (step < 0) return frames.empty() ? "(no annotation)" : frames;
  const std::string number = "step " + std::to_string(step);
  return frames.empty() ? number : number + ": " + frames;
}

GuardRecord* GuardLedger::Take() noexcept {
  Block* block = RecordSlab::Instance().Take();
  if (block == nullptr) return nullptr;
  try {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (spare_ == nullptr) spare_ = &records_.emplace_back();
    GuardRecord* const record = std::exchange(spare_, spare_->next);
    record->next = nullptr;
    record->block = block;
    return record;
  } catch (const std::bad_alloc&) {
    RecordSlab::Instance().Give(block);
    return nullptr;
  }
}

void GuardLedger::Give(GuardRecord* record) noexcept {
  RecordSlab::Instance().Give(record->block);
  record->block = nullptr;
  record->memory = nullptr;
  record->marks.clear();  // the capacity is kept
  record->state = GuardRecord::State::kLive;
  record->zoned = record->ordered = record->poisoned = false;
  const std::lock_guard<std::mutex> guard(mutex_);
  record->next = spare_;
  spare_ = record;
}

void GuardLedger::AddLive(GuardRecord* record) noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  record->of_graph = false;
  record->newer = nullptr;
  record->older = newest_;
  if (newest_ != nullptr) newest_->newer = record;
  newest_ = record;
  ++stats_.allocations;
  stats_.requested_bytes += record->bytes;
  stats_.total_requested_bytes += record->bytes;
  stats_.in_use_bytes += record->bytes;
  stats_.peak_in_use_bytes =
      std::max(stats_.peak_in_use_bytes, stats_.in_use_bytes);
}

void GuardLedger::CountFailure() noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  ++stats_.failures;
}

bool GuardLedger::BeginFree(GuardRecord& record) noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (record.state != GuardRecord::State::kLive) return false;
  record.state = GuardRecord::State::kFreeing;
  record.freed.Write();
  ++stats_.frees;
  stats_.requested_bytes -= record.bytes;
  stats_.in_use_bytes -= record.bytes;
  return true;
}

void GuardLedger::Quarantine(GuardRecord& record) noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  record.state = GuardRecord::State::kQuarantined;
  record.next = nullptr;
  (last_freed_ != nullptr ? last_freed_->next : first_freed_) = &record;
  last_freed_ = &record;
  quarantine_bytes_ += WeightOf(record);
}

void GuardLedger::BeginDrop(GuardRecord& record) noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  record.state = GuardRecord::State::kDropped;
  ++record.pins;
}

void GuardLedger::EndDrop(GuardRecord& record) noexcept {
  bool is_over = false;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    is_over = Unpin(record);
  }
  if (is_over) Give(&record);
}

bool GuardLedger::Unpin(GuardRecord& record) noexcept {
  --record.pins;
  if (record.pins != 0 || record.state != GuardRecord::State::kDropped) {
    return false;
  }
  Unlink(record);
  return true;
}

void GuardLedger::Unlink(GuardRecord& record) noexcept {
  (record.newer != nullptr ? record.newer->older : newest_) = record.older;
  if (record.older != nullptr) record.older->newer = record.newer;
}

GuardRecord* GuardLedger::TakeOldest(std::size_t keep_bytes) noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (quarantine_bytes_ <= keep_bytes) return nullptr;
  GuardRecord* before = nullptr;
  GuardRecord* record = first_freed_;
  while (record != nullptr && record->pins != 0) {
    before = std::exchange(record, record->next);
  }
  if (record == nullptr) return nullptr;
  (before != nullptr ? before->next : first_freed_) = record->next;
  if (record == last_freed_) last_freed_ = before;
  quarantine_bytes_ -= WeightOf(*record);
  Unlink(*record);
  return record;
}

std::size_t GuardLedger::quarantine_bytes() const noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  return quarantine_bytes_;
}

void GuardLedger::NoteGraph(GuardRecord& record) noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (record.state == GuardRecord::State::kLive) record.of_graph = true;
}

bool GuardLedger::IsOfGraph(const GuardRecord& record) const noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  return record.of_graph;
}

bool GuardLedger::AddMark(GuardRecord& record, Stream stream) {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (record.state != GuardRecord::State::kLive) return false;
  std::vector<Stream>& marks = record.marks;
  if (std::find(marks.begin(), marks.end(), stream) == marks.end()) {
    marks.push_back(stream);
  }
  return true;
}

void GuardLedger::RemoveMark(GuardRecord& record, Stream stream) noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (record.state != GuardRecord::State::kLive) return;
  std::erase(record.marks, stream);
}

bool GuardLedger::MarkAt(const GuardRecord& record, std::size_t index,
                         Stream* stream) const noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (index >= record.marks.size()) return false;
  *stream = record.marks[index];
  return true;
}

bool GuardLedger::AnyMark(Stream stream) const noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  for (const GuardRecord* record = newest_; record != nullptr;
       record = record->older) {
    if (record->state == GuardRecord::State::kLive &&
        std::find(record->marks.begin(), record->marks.end(), stream) !=
            record->marks.end()) {
      return true;
    }
  }
  return false;
}

void GuardLedger::RemoveMarks(Stream stream) noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  for (GuardRecord* record = newest_; record != nullptr;
       record = record->older) {
    if (record->state != GuardRecord::State::kLive) continue;
    std::erase(record->marks, stream);
  }
}

GuardRecord* GuardLedger::PinNewest() noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  if (newest_ != nullptr) ++newest_->pins;
  return newest_;
}

GuardRecord* GuardLedger::PinOlder(GuardRecord* pinned) noexcept {
  GuardRecord* older = nullptr;
  bool is_over = false;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    older = pinned->older;
    if (older != nullptr) ++older->pins;
    is_over = Unpin(*pinned);
  }
  if (is_over) Give(pinned);
  return older;
}

GuardRecord::State GuardLedger::StateOf(
    const GuardRecord& record) const noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  return record.state;
}

Stats GuardLedger::stats() const noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  return stats_;
}

void GuardLedger::ResetPeak() noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  stats_.peak_in_use_bytes = stats_.in_use_bytes;
}

}  // namespace strata
