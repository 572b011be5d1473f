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
  const std::lock_guard<std::mutex> guard(enable_mutex_);
  const GrantsPtr before = grants();
  const bool is_known = std::any_of(
      before->devices.begin(), before->devices.end(),
      [&](const AccessDescriptor& device) { return IsOf(device, peer); });
  if (!is_known) Replace(peer, /*access=*/true);
  const Status status = Apply();
  if (status != Status::kSuccess && !is_known) Replace(peer, /*access=*/false);
  return status;
}

void PeerAccess::Replace(Location peer, bool access) {
  const std::lock_guard<std::mutex> guard(mutex_);
  auto changed = std::make_shared<Grants>(*grants_);
  std::erase_if(changed->devices, [&](const AccessDescriptor& device) {
    return IsOf(device, peer);
  });
  if (access) changed->devices.push_back({peer, Access::kReadWrite});
  ++changed->version;
  grants_ = std::move(changed);
}

Status PeerAccess::Apply() {
  std::vector<std::shared_ptr<Entry>> mappers;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    mappers = mappers_;
  }
  for (const std::shared_ptr<Entry>& entry : mappers) {
    const CallGate::Pass pass(entry->gate);
    if (!pass) continue;
    const Status status = entry->mapper->ApplyGrants();
    if (status != Status::kSuccess) return status;
  }
  return Status::kSuccess;
}

}  // namespace strata
