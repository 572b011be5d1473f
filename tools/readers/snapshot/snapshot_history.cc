#include "strata/tools/readers/snapshot/snapshot_history.h"

#include <algorithm>
#include <utility>

namespace strata::tools {
namespace {

using Action = SnapshotEntry::Action;

class HistoryReader {
 public:
  HistoryReader(const std::vector<SnapshotEntry>& entries,
                std::optional<std::uint64_t> reserved_at_end)
      : entries_(entries), has_shared_frames_(HasSharedFrames()) {
    if (reserved_at_end) FindReserved(*reserved_at_end);
    FindDevice();
  }

  SnapshotHistory Read() {
    SnapshotHistory history;
    history.recorded.peak_reserved_bytes = peak_bytes_;
    history.recorded.device_bytes = device_bytes_;
    bool ran_out = false;  // no allocation followed since
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (entries_[i].action == Action::kOutOfMemory) ran_out = true;
      if (entries_[i].action == Action::kAllocate) ran_out = false;
      if (entries_[i].action != Action::kSegmentFree) continue;
      const std::size_t first = i;
      const std::size_t next = EndOfRun(first);
      if (!ran_out && !IsForRequest(first, next)) {
        history.releases.push_back(first);
      }
      i = next - 1;
    }
    return history;
  }

 private:
  // The change of the reserved bytes by an entry, in two's complement.
  static std::uint64_t Change(const SnapshotEntry& entry) {
    if (entry.action == Action::kSegmentAllocate) return entry.bytes;
    if (entry.action == Action::kSegmentFree) return 0 - entry.bytes;
    return 0;
  }

  // Fills reserved_, or leaves it empty if the entries contradict each other.
  void FindReserved(std::uint64_t at_end) {
    std::uint64_t change = 0;
    for (const SnapshotEntry& entry : entries_) change += Change(entry);
    std::uint64_t reserved = at_end - change;
    std::uint64_t peak = reserved;
    std::vector<std::uint64_t> before;
    before.reserve(entries_.size());
    for (const SnapshotEntry& entry : entries_) {
      before.push_back(reserved);
      if (entry.action == Action::kSegmentFree && entry.bytes > reserved) {
        return;
      }
      reserved += Change(entry);
      peak = std::max(peak, reserved);
    }
    // More than any device has: a part of the history is missing.
    if (peak >> 60 != 0) return;
    peak_bytes_ = peak;
    reserved_ = std::move(before);
  }

  void FindDevice() {
    if (reserved_.empty()) return;
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const SnapshotEntry& entry = entries_[i];
      if (entry.action != Action::kOutOfMemory || !entry.has_address) continue;
      if (entry.address >> 60 != 0) continue;
      device_bytes_ = std::max(device_bytes_, reserved_[i] + entry.address);
    }
    if (device_bytes_ == 0) return;
    device_bytes_ = std::max(device_bytes_, peak_bytes_);
  }

  // The index after the run that begins at `first`, and after entries without
  // meaning.
  std::size_t EndOfRun(std::size_t first) const {
    std::size_t end = first;
    while (end < entries_.size() &&
           (entries_[end].action == Action::kSegmentFree ||
            entries_[end].action == Action::kOther)) {
      ++end;
    }
    return end;
  }

  // Whether the run was freed for the request of entry `next`.
  bool IsForRequest(std::size_t first, std::size_t next) const {
    if (next == entries_.size()) return false;
    const SnapshotEntry& entry = entries_[next];
    if (entry.action == Action::kOutOfMemory) return true;
    if (entry.action != Action::kSegmentAllocate) return false;
    const std::uint32_t frames = entries_[first].frames;
    if (has_shared_frames_ && frames != 0 && entry.frames != 0) {
      return frames == entry.frames;
    }
    if (reserved_.empty()) return true;
    const std::uint64_t most = std::max(peak_bytes_, device_bytes_);
    return entry.bytes > most - reserved_[first];
  }

  // Whether the entries of one call share their frames, as a new segment and
  // its first block show.
  bool HasSharedFrames() const {
    const auto shares = [](const SnapshotEntry& a, const SnapshotEntry& b) {
      return a.action == Action::kSegmentAllocate &&
             b.action == Action::kAllocate && a.frames != 0 &&
             a.frames == b.frames;
    };
    return std::adjacent_find(entries_.begin(), entries_.end(), shares) !=
           entries_.end();
  }

  const std::vector<SnapshotEntry>& entries_;
  const bool has_shared_frames_;
  std::vector<std::uint64_t> reserved_;  // before each entry; empty: unknown
  std::uint64_t peak_bytes_ = 0;
  std::uint64_t device_bytes_ = 0;
};

}  // namespace

SnapshotHistory ReadHistory(const std::vector<SnapshotEntry>& entries,
                            std::optional<std::uint64_t> reserved_at_end) {
  return HistoryReader(entries, reserved_at_end).Read();
}

}  // namespace strata::tools
