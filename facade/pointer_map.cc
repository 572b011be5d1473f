#include "strata/facade/pointer_map.h"

#include <utility>

#include "strata/allocation/allocator.h"
#include "strata/facade/front.h"

namespace strata {

PointerMap::PointerMap() : regions_(std::make_shared<PointerRegions>()) {}

PointerMap::~PointerMap() { Clear(); }

PointerGroup& PointerMap::Make(std::size_t number) {
  made_.reserve(made_.size() + 1);
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
  // The common one is there first, or never needed.
  for (std::size_t number = kCommon + 1; number < kGroups; ++number) {
    if (groups_[number].load() != nullptr) continue;
    PointerGroup& made = Make(number);
    front.Share(made_.back());
    return made;
  }
  PointerGroup* const common = groups_[kCommon].load();
  return common != nullptr ? *common : Make(kCommon);
}

PointerGroup& PointerMap::Settle(const Allocation& allocation, Front& front) {
  std::uint8_t number = 0;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    const PointerGroup* const own = front.pointers();
    number = own != nullptr ? own->number() : BindOne(front).number();
  }
  return *groups_[regions_->Settle(allocation.data(), number)].load();
}

void PointerMap::Insert(AllocationPtr allocation) {
  const void* const data = allocation->data();
  // All that a facade hands out is a front's.
  auto& front = static_cast<Front&>(*allocation->owner());
  PointerGroup* group = GroupOf(data);
  if (group == nullptr || front.pointers() == nullptr) {
    group = &Settle(*allocation, front);
  }
  group->Insert(data, allocation.get());
  static_cast<void>(allocation.release());
}

Allocation* PointerMap::Find(const void* data) const {
  const PointerGroup* const group = GroupOf(data);
  return group != nullptr ? group->Find(data) : nullptr;
}

AllocationPtr PointerMap::Take(const void* data) noexcept {
  PointerGroup* const group = GroupOf(data);
  return AllocationPtr(group != nullptr ? group->Take(data) : nullptr);
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
