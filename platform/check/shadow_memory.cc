#include "strata/platform/check/shadow_memory.h"

#include <algorithm>
#include <iterator>

namespace strata::check {
namespace {

bool SameUse(const MemoryUse& a, const MemoryUse& b) {
  return a.epoch == b.epoch && a.life == b.life && a.region == b.region &&
         a.write == b.write && a.concluded == b.concluded;
}

bool SameSegment(const MemorySegment& a, const MemorySegment& b) {
  return a.life == b.life && std::equal(a.uses.begin(), a.uses.end(),
                                        b.uses.begin(), b.uses.end(), SameUse);
}

bool IsOver(const MemoryUse& use) {
  return use.life != nullptr && use.life->IsOver();
}

}  // namespace

void MemorySegment::Add(const MemoryUse& use) {
  for (MemoryUse& known : uses) {
    if (known.epoch.component != use.epoch.component ||
        known.life != use.life || known.region != use.region ||
        known.write != use.write) {
      continue;
    }
    if (known.epoch.count < use.epoch.count) known = use;
    return;
  }
  uses.push_back(use);
}

void MemorySegment::AddConcluded(MemoryUse use) {
  use.concluded = true;
  MemoryUse* earlier = nullptr;
  for (MemoryUse& known : uses) {
    if (known.life != use.life || known.region != use.region ||
        known.epoch.component != use.epoch.component) {
      continue;
    }
    if (known.concluded) {
      earlier = &known;
    } else if (known.epoch.count >= use.epoch.count) {
      return;
    }
  }
  if (earlier != nullptr) {
    *earlier = std::move(use);
  } else {
    uses.push_back(std::move(use));
  }
}

void MemorySegment::Begin(const std::shared_ptr<BlockLife>& fresh) {
  life = fresh;
  std::vector<MemoryUse> kept;
  for (MemoryUse& use : uses) {
    if (!IsOver(use)) {
      kept.push_back(std::move(use));
      continue;
    }
    const auto same = [&](const MemoryUse& other) {
      return IsOver(other) && other.region == use.region &&
             other.epoch.component == use.epoch.component;
    };
    const auto found = std::find_if(kept.begin(), kept.end(), same);
    if (found == kept.end()) {
      kept.push_back(std::move(use));
    } else if (found->epoch.count < use.epoch.count) {
      *found = std::move(use);
    }
  }
  uses = std::move(kept);
}

void MemorySegment::EndRegion(std::uint64_t region) {
  const auto ended = std::stable_partition(
      uses.begin(), uses.end(),
      [&](const auto& use) { return use.region != region; });
  std::vector<MemoryUse> through(std::make_move_iterator(ended),
                                 std::make_move_iterator(uses.end()));
  uses.erase(ended, uses.end());
  for (MemoryUse& use : through) {
    use.region = 0;
    Add(use);
  }
}

void ShadowMemory::CutAt(std::uint64_t space, std::uint64_t at) {
  auto row = segments_.upper_bound({space, at});
  if (row == segments_.begin()) return;
  --row;
  const auto [row_space, begin] = row->first;
  if (row_space != space || begin >= at || row->second.end <= at) return;
  Row rest = row->second;
  row->second.end = at;
  segments_.emplace_hint(std::next(row), Key(space, at), std::move(rest));
}

ShadowMemory::Rows::iterator ShadowMemory::Cut(std::uint64_t space,
                                               std::uint64_t begin,
                                               std::uint64_t end) {
  CutAt(space, begin);
  CutAt(space, end);
  std::uint64_t at = begin;
  auto row = segments_.lower_bound({space, begin});
  while (at < end) {
    const bool here = row != segments_.end() && row->first == Key(space, at);
    if (!here) {
      Row gap;
      gap.end = row != segments_.end() && row->first.first == space
                    ? std::min(end, row->first.second)
                    : end;
      row = segments_.emplace_hint(row, Key(space, at), std::move(gap));
    }
    at = row->second.end;
    ++row;
  }
  return segments_.find({space, begin});
}

ShadowMemory::Rows::iterator ShadowMemory::CoalesceWithPrevious(
    Rows::iterator row) {
  if (row == segments_.begin()) return row;
  const auto previous = std::prev(row);
  const auto& [space, begin] = row->first;
  if (previous->first.first != space || previous->second.end != begin ||
      !SameSegment(previous->second.segment, row->second.segment)) {
    return row;
  }
  previous->second.end = row->second.end;
  segments_.erase(row);
  return previous;
}

void ShadowMemory::Erase(std::uint64_t space, std::uint64_t begin,
                         std::uint64_t end) {
  CutAt(space, begin);
  CutAt(space, end);
  segments_.erase(segments_.lower_bound({space, begin}),
                  segments_.lower_bound({space, end}));
}

void ShadowMemory::EraseSpace(std::uint64_t space) {
  segments_.erase(segments_.lower_bound({space, 0}),
                  segments_.lower_bound({space + 1, 0}));
}

}  // namespace strata::check
