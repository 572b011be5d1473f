#include "strata/platform/sim/graphs/user_objects.h"

#include <algorithm>
#include <utility>

#include "strata/platform/sim/memory/device_windows.h"
#include "strata/platform/sim/streams/host_function_scope.h"

namespace strata::sim {
namespace {

constexpr HandleSpace kObjectHandles(0x64);

}  // namespace

UserObjectTable::UserObjectTable() : queue_(std::make_shared<Queue>()) {}

UserObject UserObjectTable::Create(int device, void* pointer,
                                   HostFunction destroy) {
  const UserObject object{kObjectHandles.At(0, ++made_)};
  auto due = [queue = queue_, destroy](void* gone) {
    queue->due.push_back({gone, destroy});
    ++queue->count;
  };
  // A null pointer is a valid pointer of an object.
  Entry entry{device, 1, UserObjectRef(pointer, std::move(due)), {}};
  entry.alive = entry.held;
  entries_.emplace(object.value, std::move(entry));
  return object;
}

Status UserObjectTable::Retain(UserObject object, bool move,
                               UserObjectRef* reference) {
  const auto found = entries_.find(object.value);
  if (found == entries_.end() || found->second.callers == 0) {
    return Status::kInvalidValue;
  }
  *reference = found->second.held;
  return move ? Release(object) : Status::kSuccess;
}

Status UserObjectTable::Release(UserObject object) {
  const auto found = entries_.find(object.value);
  if (found == entries_.end() || found->second.callers == 0) {
    return Status::kInvalidValue;
  }
  Entry& entry = found->second;
  if (--entry.callers == 0) entry.held.reset();
  if (entry.alive.expired()) entries_.erase(found);
  return Status::kSuccess;
}

void UserObjectTable::RunDestructors(std::mutex* mutex) {
  std::vector<Due> due;
  {
    std::lock_guard lock(*mutex);
    due.swap(queue_->due);
    queue_->count = 0;
    for (auto it = entries_.begin(); it != entries_.end();) {
      it = it->second.alive.expired() ? entries_.erase(it) : std::next(it);
    }
  }
  const HostFunctionScope scope;
  for (const Due& object : due) object.destroy(object.pointer);
}

std::uint64_t UserObjectTable::live_count(int device) const {
  return static_cast<std::uint64_t>(std::count_if(
      entries_.begin(), entries_.end(), [device](const auto& entry) {
        return entry.second.device == device && !entry.second.alive.expired();
      }));
}

}  // namespace strata::sim
