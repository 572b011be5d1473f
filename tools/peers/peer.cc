#include "strata/tools/peers/peer.h"

#include <stdexcept>
#include <string>

#include "strata/allocation/error.h"
#include "strata/allocation/failure.h"
#include "strata/platform/calls/device_call.h"
#include "strata/platform/place.h"

namespace strata::peers {

bool FoundMemory(Status status, DeviceCall call) {
  if (status == Status::kMemoryAllocation) return false;
  RequireSuccess(status, call);
  return true;
}

void RequireSuccess(Status status, DeviceCall call) {
  if (status == Status::kSuccess) return;
  std::string text = DeviceCallName(call);
  text += " failed: ";
  text += ToString(status);
  throw std::runtime_error(text);
}

void ThrowOutOfMemory(const Peer& peer, Device& device, std::size_t bytes) {
  const PeerStats stats = peer.stats();
  Failure failure;
  failure.reason = Failure::Reason::kDeviceMemory;
  failure.place = DevicePlace(device.ordinal());
  failure.layer = peer.name();
  failure.requested_bytes = bytes;
  failure.in_use_bytes = stats.in_use_bytes;
  failure.reserved_bytes = stats.reserved_bytes;
  // Left at 0 if the query fails.
  device.MemGetInfo(&failure.device_free_bytes, &failure.device_total_bytes);
  throw BadAlloc(failure);
}

}  // namespace strata::peers
