#include "strata/tools/peers/peer.h"

#include <stdexcept>
#include <string>

#include "strata/platform/device_call.h"

namespace strata {

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

}  // namespace strata
