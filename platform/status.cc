#include "strata/platform/status.h"

#include <ostream>
#include <string_view>

#include "strata/base/parse_number.h"

namespace strata {
namespace {

struct StatusRow {
  Status status;
  const char* name;
};

constexpr StatusRow kStatusRows[] = {
    {Status::kSuccess, "Success"},
    {Status::kInvalidValue, "InvalidValue"},
    {Status::kMemoryAllocation, "MemoryAllocation"},
    {Status::kInvalidDevice, "InvalidDevice"},
    {Status::kInvalidResourceHandle, "InvalidResourceHandle"},
    {Status::kIllegalState, "IllegalState"},
    {Status::kNotReady, "NotReady"},
    {Status::kIllegalAddress, "IllegalAddress"},
    {Status::kPeerAccessAlreadyEnabled, "PeerAccessAlreadyEnabled"},
    {Status::kContextIsDestroyed, "ContextIsDestroyed"},
    {Status::kHostMemoryAlreadyRegistered, "HostMemoryAlreadyRegistered"},
    {Status::kHostMemoryNotRegistered, "HostMemoryNotRegistered"},
    {Status::kNotPermitted, "NotPermitted"},
    {Status::kNotSupported, "NotSupported"},
    {Status::kStreamCaptureUnsupported, "StreamCaptureUnsupported"},
    {Status::kStreamCaptureInvalidated, "StreamCaptureInvalidated"},
    {Status::kStreamCaptureMerge, "StreamCaptureMerge"},
    {Status::kStreamCaptureUnmatched, "StreamCaptureUnmatched"},
    {Status::kStreamCaptureUnjoined, "StreamCaptureUnjoined"},
    {Status::kStreamCaptureIsolation, "StreamCaptureIsolation"},
    {Status::kStreamCaptureImplicit, "StreamCaptureImplicit"},
    {Status::kCapturedEvent, "CapturedEvent"},
    {Status::kStreamCaptureWrongThread, "StreamCaptureWrongThread"},
    {Status::kGraphExecUpdateFailure, "GraphExecUpdateFailure"},
    {Status::kUnknown, "Unknown"},
};

const StatusRow* FindByName(std::string_view name) {
  for (const StatusRow& row : kStatusRows) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

const StatusRow* FindByNumber(std::int32_t number) {
  for (const StatusRow& row : kStatusRows) {
    if (static_cast<std::int32_t>(row.status) == number) return &row;
  }
  return nullptr;
}

}  // namespace

const char* StatusName(Status status) {
  const StatusRow* row = FindByNumber(static_cast<std::int32_t>(status));
  return row == nullptr ? "Unrecognized" : row->name;
}

std::ostream& operator<<(std::ostream& out, Status status) {
  return out << StatusName(status) << " (" << static_cast<std::int32_t>(status)
             << ")";
}

std::string ToString(Status status) {
  return std::string(StatusName(status)) + " (" +
         std::to_string(static_cast<std::int32_t>(status)) + ")";
}

bool ParseStatus(const std::string& text, Status* status) {
  std::string_view name = text;
  const StatusRow* row = nullptr;
  if (const auto number = ParseNumber<std::int32_t>(text)) {
    row = FindByNumber(*number);
  } else {
    if (!name.empty() && name.front() == 'k') name.remove_prefix(1);
    row = FindByName(name);
  }
  if (row == nullptr) return false;
  *status = row->status;
  return true;
}

}  // namespace strata
