#include "strata/platform/sim/memory/address_lane.h"

#include <algorithm>

namespace strata::sim {

AddressLane::AddressLane(std::uint64_t begin, std::uint64_t bytes)
    : begin_(begin), bytes_(bytes), cursor_(begin) {
  free_.Add(free_.end(), begin + bytes, begin);
}

std::optional<std::uint64_t> AddressLane::Take(std::uint64_t bytes,
                                               std::uint64_t alignment) {
  auto gap = free_.upper_bound(cursor_);
  // Two more than the number of gaps: the gap at the cursor is checked twice,
  // from the cursor and, after starting over, from its beginning.
  const std::size_t tries =
      std::min<std::size_t>(kMaxGapsTried, free_.size() + 2);
  for (std::size_t i = 0; i < tries; ++i) {
    if (gap == free_.end()) {
      cursor_ = begin_;
      gap = free_.begin();
      continue;
    }
    const std::uint64_t end = gap->first;
    const auto found =
        TakeFrom(gap, std::max(gap->second, cursor_), bytes, alignment);
    if (found) {
      cursor_ = *found + bytes;
      return found;
    }
    cursor_ = end;
    ++gap;
  }
  return std::nullopt;
}

std::optional<std::uint64_t> AddressLane::TakeLowest(std::uint64_t bytes,
                                                     std::uint64_t alignment) {
  ReleaseQuarantine(0);
  for (auto gap = free_.begin(); gap != free_.end(); ++gap) {
    const auto found = TakeFrom(gap, gap->second, bytes, alignment);
    if (found) return found;
  }
  return std::nullopt;
}

void AddressLane::Give(std::uint64_t begin, std::uint64_t bytes) {
  quarantine_.push_back(Range{begin, bytes});
  ReleaseQuarantine(kQuarantinedFrees);
}

std::optional<std::uint64_t> AddressLane::TakeFrom(FreeRanges::iterator gap,
                                                   std::uint64_t from,
                                                   std::uint64_t bytes,
                                                   std::uint64_t alignment) {
  const std::uint64_t end = gap->first;
  const std::uint64_t begin = (from + alignment - 1) & ~(alignment - 1);
  if (begin >= end || end - begin < bytes) return std::nullopt;
  const std::uint64_t gap_begin = gap->second;
  if (gap_begin < begin) free_.Add(gap, begin, gap_begin);
  if (begin + bytes == end) {
    free_.Erase(gap);
  } else {
    gap->second = begin + bytes;
  }
  return begin;
}

void AddressLane::ReleaseQuarantine(std::size_t keep) {
  while (quarantine_.size() > keep) {
    const Range& range = quarantine_.front();
    AddRange(range.begin, range.begin + range.bytes, &free_);
    quarantine_.pop_front();
  }
}

}  // namespace strata::sim
