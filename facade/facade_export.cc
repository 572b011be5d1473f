// Memory of an AllocatorFacade for other processes, other devices and network
// cards.

#include <optional>
#include <stdexcept>
#include <string>

#include "strata/allocation/error.h"
#include "strata/allocation/streams/capture_gate.h"
#include "strata/facade/allocator_facade.h"
#include "strata/facade/chains/front.h"
#include "strata/facade/graphs/graph_pools.h"
#include "strata/facade/place_state.h"
#include "strata/strategy/virtual_memory/sharing/peer_access.h"

namespace strata {
namespace {

void RequireDevicePlace(const char* what, Place place) {
  if (place.kind == PlaceKind::kDevice) return;
  throw std::invalid_argument(std::string(what) + ": " + ToString(place) +
                              " is no device");
}

// Throws unless `allocation` belongs to the facade of `state`.
void RequireOwn(const char* what, const Allocation& allocation,
                const PlaceState& state) {
  if (allocation.data() == nullptr) return;  // belongs to no layer
  const auto* front = dynamic_cast<const Front*>(allocation.owner());
  if (front != nullptr && &front->home() == &state) return;
  throw std::invalid_argument(std::string(what) +
                              ": the allocation belongs to another facade");
}

}  // namespace

ExportedMemory AllocatorFacade::Export(const Allocation& allocation) {
  PlaceState& state = Find(allocation.place());
  RequireOwn("Export", allocation, state);
  ExportedMemory exported;
  std::optional<CaptureGate::CallScope> scope;
  if (Device* const device = state.device()) {
    if (!scope.emplace(&graph_pools_->gate(), *device)) {
      ThrowNotRelaxed("Export");
    }
  }
  const Status status = ExportMapped(allocation, &exported);
  if (status == Status::kNotSupported) {
    throw std::invalid_argument(
        "Export: the allocation lies in no handle that can be exported; " +
        ToString(allocation.place()) + " has strategy " +
        state.strategy_name());
  }
  if (status != Status::kSuccess) throw DeviceError("Export", status);
  exported.set_owner(state.shared_from_this());
  return exported;
}

ImportedMemory AllocatorFacade::Import(Place place,
                                       const std::vector<SharedPiece>& pieces) {
  RequireDevicePlace("Import", place);
  PlaceState& state = Find(place);
  const CaptureGate::CallScope scope(&graph_pools_->gate(), *state.device());
  if (!scope) ThrowNotRelaxed("Import");
  return ImportedMemory::Map(platform_, *state.device(), pieces,
                             state.strategy_options().peers->grants()->devices);
}

AddressSpan AllocatorFacade::GetAddressRange(const Allocation& allocation) {
  RequireOwn("GetAddressRange", allocation, Find(allocation.place()));
  if (const auto span = MappedSpanOf(allocation)) return *span;
  const Block* block = allocation.block();
  while (block->chunk != nullptr) block = block->chunk->memory->block();
  return {block->data, block->size};
}

void AllocatorFacade::EnablePeerAccess(Place place, int peer) {
  RequireDevicePlace("EnablePeerAccess", place);
  PlaceState& state = Find(place);
  if (!platform_->HasDevice(peer) || peer == place.index) {
    throw std::invalid_argument("EnablePeerAccess: " + ToString(place) +
                                " has no peer " + std::to_string(peer));
  }
  const CaptureGate::RelaxedScope relaxed(graph_pools_->gate(), state.device());
  if (!relaxed) ThrowNotRelaxed("EnablePeerAccess");
  Device& device = platform_->device(peer);
  bool can_access = false;
  Status status = device.CanAccessPeer(place.index, &can_access);
  if (status == Status::kSuccess && !can_access) {
    throw std::invalid_argument("EnablePeerAccess: device " +
                                std::to_string(peer) + " cannot access " +
                                ToString(place));
  }
  // Access to chunks.
  if (status == Status::kSuccess) status = device.EnablePeerAccess(place.index);
  if (status == Status::kSuccess ||
      status == Status::kPeerAccessAlreadyEnabled) {
    status =
        state.strategy_options().peers->Enable({Location::Kind::kDevice, peer});
  }
  if (status != Status::kSuccess) throw DeviceError("EnablePeerAccess", status);
}

}  // namespace strata
