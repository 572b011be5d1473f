#include "strata/facade/pointer_map.h"

#include <utility>

#include "strata/allocation/allocator.h"
#include "strata/facade/front.h"

namespace strata {

thread_local constinit std::uint8_t PointerMap::t_last =
    PointerRegions::kNobody;

PointerMap::PointerMap() : regions_(std::make_shared<PointerRegions>()) {}

PointerMap::~PointerMap() { Clear(); }

PointerGroup& PointerMap::Make(std::size_t number) {
  made_.push_back(std::make_shared<PointerGroup>(
      static_cast<std::uint8_t>(number), regions_));
  PointerGroup& made = *made_.back();
  groups_[number].store(&made, std::memory_order_release);
  return made;
}

PointerGroup& PointerMap::BindOne(Front& front) {
  for (const auto& group : made_) {
    if (group->number() != kCommon && front.Share(group)) return *group;
  }
  // The common group exists from the start, or is never needed.
  for (std::size_t number = kCommon + 1; number < kGroups; ++number) {
    if (groups_[number].load() != nullptr) continue;
    PointerGroup& made = Make(number);
    front.Share(made_.back());
    return made;
  }
  PointerGroup* const common = groups_[kCommon].load();
  return common != nullptr ? *common : Make(kCommon);
}

PointerGroup& PointerMap::GroupFor(Front& front) {
  if (PointerGroup* own = front.pointers()) return *own;
  try {
    const std::lock_guard<std::mutex> guard(mutex_);
    if (PointerGroup* const own = front.pointers()) return *own;
    PointerGroup& bound = BindOne(front);
    if (bound.number() == kCommon) front.NoteUnknown();
    return bound;
  } catch (const std::bad_alloc&) {
    front.NoteUnknown();
    throw;
  }
}

void PointerMap::Insert(AllocationPtr allocation) {
  const void* const data = allocation->data();
  // Every allocation of a facade belongs to a front.
  PointerGroup& group = GroupFor(static_cast<Front&>(*allocation->owner()));
  // First: if memory runs out below, the block is freed, and the front cache
  // may hold it. Its hits do not read regions.
  regions_->Settle(data, group.number());
  // An aligned pointer may lie in a later region than its block. The front
  // cache holds the block.
  const void* const start = allocation->block()->data;
  if (start != data) regions_->Settle(start, group.number());
  t_last = group.number();
  group.Insert(data, allocation.get());
  static_cast<void>(allocation.release());
}

template <class Ask>
Allocation* PointerMap::AskAll(const void* data, Ask ask) const {
  const PointerRegions::Owners owners = regions_->OwnersOf(data);
  const auto ask_one = [&](std::size_t number) -> Allocation* {
    PointerGroup* const group = groups_[number].load(std::memory_order_acquire);
    return group != nullptr ? ask(*group) : nullptr;
  };
  if (Allocation* const found = ask_one(owners.last)) return found;
  if (owners.before != PointerRegions::kMany) return ask_one(owners.before);
  for (std::size_t number = kCommon; number < kGroups; ++number) {
    if (Allocation* const found = ask_one(number)) return found;
  }
  return nullptr;
}

Allocation* PointerMap::Find(const void* data) const {
  return AskAll(data, [data](PointerGroup& group) { return group.Find(data); });
}

AllocationPtr PointerMap::Take(const void* data) noexcept {
  return AllocationPtr(
      AskAll(data, [data](PointerGroup& group) { return group.Take(data); }));
}

std::size_t PointerMap::Clear() noexcept {
  std::size_t count = 0;
  for (const auto& place : groups_) {
    PointerGroup* const group = place.load();
    if (group != nullptr) count += group->Clear();
  }
  return count;
}

}  // namespace strata
