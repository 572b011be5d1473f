#include "strata/tools/readers/snapshot/snapshot_layout.h"

#include <algorithm>
#include <map>

#include "strata/base/size.h"

namespace strata::tools {
namespace {

using Action = SnapshotEntry::Action;
using Segments = std::map<std::uint64_t, SnapshotSegment>;  // by address

// PyTorch's constants: the rounding of blocks, and the largest unused rest at
// the end of a block of a large segment (pytorch.md §2.1, §2.4).
constexpr std::uint64_t kRoundingBytes = 512;
constexpr std::uint64_t kMostSlackBytes = Mebibytes(1);
constexpr std::uint64_t kSmallLayoutBytes = Mebibytes(2);

// False if the entries contradict `segments`.
bool Undo(const std::vector<SnapshotEntry>& entries, Segments& segments) {
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    if (entry->action == Action::kSegmentAllocate) {
      if (segments.erase(entry->address) == 0) return false;
    } else if (entry->action == Action::kSegmentFree) {
      const SnapshotSegment freed{
          entry->address, entry->bytes, entry->stream, {}};
      if (!segments.emplace(freed.address, freed).second) return false;
    }
  }
  return true;
}

// False if a block lies in no segment.
bool Distribute(const std::vector<SnapshotBlock>& blocks, Segments& segments) {
  for (const SnapshotBlock& block : blocks) {
    auto segment = segments.upper_bound(block.address);
    if (segment == segments.begin()) return false;
    --segment;
    SnapshotSegment& owner = segment->second;
    const std::uint64_t offset = block.address - owner.address;
    if (offset >= owner.bytes || offset % kRoundingBytes != 0) return false;
    const std::uint64_t room = owner.bytes - offset;
    if (block.bytes == 0 || block.bytes > room || block.size > room) {
      return false;
    }
    owner.blocks.push_back(block);
  }
  return true;
}

// False if blocks overlap, or are too small.
bool FindSizes(SnapshotSegment& segment) {
  const std::uint64_t segment_end = segment.address + segment.bytes;
  for (std::size_t i = 0; i < segment.blocks.size(); ++i) {
    SnapshotBlock& block = segment.blocks[i];
    const bool is_last = i + 1 == segment.blocks.size();
    const std::uint64_t room =
        (is_last ? segment_end : segment.blocks[i + 1].address) - block.address;
    if (block.size == 0) {
      block.size =
          AlignUp(std::max<std::uint64_t>(block.bytes, 1), kRoundingBytes);
      const bool has_slack = segment.bytes > kSmallLayoutBytes &&
                             block.size < room &&
                             room - block.size <= kMostSlackBytes;
      if (has_slack) block.size = room;
    }
    if (block.size > room || block.size < block.bytes) return false;
  }
  return true;
}

}  // namespace

std::vector<SnapshotSegment> SegmentsBefore(
    const std::vector<SnapshotEntry>& entries,
    const std::vector<SnapshotSegment>& at_end,
    const std::vector<SnapshotBlock>& before) {
  Segments segments;
  for (const SnapshotSegment& segment : at_end) {
    segments.emplace(
        segment.address,
        SnapshotSegment{segment.address, segment.bytes, segment.stream, {}});
  }
  if (!Undo(entries, segments) || !Distribute(before, segments)) return {};
  std::vector<SnapshotSegment> result;
  for (auto& [address, segment] : segments) {
    if (!FindSizes(segment)) return {};
    result.push_back(std::move(segment));
  }
  return result;
}

}  // namespace strata::tools
