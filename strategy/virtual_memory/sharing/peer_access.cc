#include "strata/strategy/virtual_memory/sharing/peer_access.h"

#include <algorithm>
#include <utility>

namespace strata {
namespace {

bool IsOf(const AccessDescriptor& descriptor, Location location) {
  return descriptor.location.kind == location.kind &&
         descriptor.location.id == location.id;
}

}  // namespace

PeerAccess::PeerAccess(Location owner) {
  auto grants = std::make_shared<Grants>();
  grants->devices.push_back({owner, Access::kReadWrite});
  grants_ = std::move(grants);
}

PeerAccess::GrantsPtr PeerAccess::grants() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return grants_;
}

std::uint64_t PeerAccess::version() const {
  const std::lock_guard<std::mutex> guard(mutex_);
  return grants_->version;
}

void PeerAccess::Add(Mapper& mapper) {
  auto entry = std::make_shared<Entry>();
  entry->mapper = &mapper;
  const std::lock_guard<std::mutex> guard(mutex_);
  mappers_.push_back(std::move(entry));
}

void PeerAccess::Remove(const Mapper& mapper) noexcept {
  std::shared_ptr<Entry> entry;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = std::find_if(
        mappers_.begin(), mappers_.end(),
        [&](const auto& other) { return other->mapper == &mapper; });
    if (found == mappers_.end()) return;
    entry = *found;
    mappers_.erase(found);
  }
  entry->gate.Close();
}

Status PeerAccess::Enable(Location peer) {
  const std::lock_guard<std::mutex> enabling(enable_mutex_);
  // Everything that can fail for lack of host memory comes before a change.
  const auto with = std::make_shared<Grants>(*grants());
  const auto without = std::make_shared<Grants>(*with);
  const bool is_new = std::none_of(
      with->devices.begin(), with->devices.end(),
      [&](const AccessDescriptor& device) { return IsOf(device, peer); });
  if (is_new) with->devices.push_back({peer, Access::kReadWrite});
  with->version += is_new ? 1 : 0;
  without->version = with->version + 1;
  std::vector<std::shared_ptr<Entry>> mappers;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    mappers = mappers_;
    grants_ = with;
  }
  const Status status = Apply(mappers);
  if (status != Status::kSuccess && is_new) {
    const std::lock_guard<std::mutex> guard(mutex_);
    grants_ = without;
  }
  return status;
}

Status PeerAccess::Apply(
    const std::vector<std::shared_ptr<Entry>>& mappers) noexcept {
  for (const std::shared_ptr<Entry>& entry : mappers) {
    const CallGate::Pass pass(entry->gate);
    if (!pass) continue;
    const Status status = entry->mapper->ApplyGrants();
    if (status != Status::kSuccess) return status;
  }
  return Status::kSuccess;
}

}  // namespace strata
