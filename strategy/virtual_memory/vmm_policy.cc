#include "strata/strategy/virtual_memory/vmm_policy.h"

#include <algorithm>
#include <stdexcept>
#include <string>

#include "strata/base/parse_number.h"
#include "strata/base/size.h"
#include "strata/strategy/virtual_memory/address_range.h"

namespace strata {
namespace {

// From this room on, handles have the largest size. With less room, their size
// falls with the square of the room, so that the last GiB are mapped page by
// page.
constexpr std::size_t kAmpleRoomBytes = std::size_t{72} << 30;
constexpr std::size_t kMostHandleBytes = std::size_t{64} << 20;
// About the most handles of one growth, however little room there is. Each
// costs calls of 15 us together (H200).
constexpr std::size_t kMostHandles = 768;
constexpr std::size_t kQuantumBytes = std::size_t{20} << 20;
// A growth creates at least this fraction of the reserved bytes and of the
// room. Each growth costs a call to set access, the most expensive call.
constexpr std::size_t kQuantumDivisor = 256;
// Least room with which a stream moves memory, in multiples of the bytes that
// it holds; docs/rules/virtual_memory.md. kLeastAmpleRoom is for a stream that
// holds more than its peak (IsAmple).
constexpr double kLeastRoom = 2.4;
constexpr double kLeastAmpleRoom = 0.25;
// First range of an arena, as a fraction of the device's memory.
constexpr std::size_t kFirstRangeDivisor = 8;
constexpr std::size_t kFirstSmallRangeDivisor = 64;

// A smaller reserve holds no block.
constexpr std::size_t kLeastReserveBytes = 3 * kPageBytes;
// The address space of a process on x86-64 and arm64.
constexpr std::size_t kMostReserveBytes = std::size_t{1} << 47;

void CheckBounds(const char* option, std::uint64_t bytes, std::size_t least,
                 std::size_t most) {
  if (bytes >= least && bytes <= most) return;
  throw std::invalid_argument(std::string(option) + ": " +
                              std::to_string(bytes) +
                              " bytes are not between " + HumanBytes(least) +
                              " and " + HumanBytes(most));
}

std::size_t ParseDial(const std::string& text) {
  const auto dial = ParseNumber<std::size_t>(text);
  if (!dial || *dial == 0) {
    throw std::invalid_argument("strata_vmm_remap: '" + text +
                                "' is not lazy, tight, or a whole number of 1 "
                                "or more");
  }
  return *dial;
}

}  // namespace

VmmPolicy::VmmPolicy(const VirtualMemoryOptions& options)
    : most_handle_bytes_(vmm::WholePages(options.vmm_handle_max_bytes)),
      most_address_bytes_(options.vmm_reserve_bytes),
      may_alias_(options.vmm_alias) {
  CheckBounds("strata_vmm_handle_max", options.vmm_handle_max_bytes, kPageBytes,
              kMostHandleBytes);
  CheckBounds("strata_vmm_reserve", options.vmm_reserve_bytes,
              kLeastReserveBytes, kMostReserveBytes);
  if (options.vmm_remap == "lazy") {
    remap_ = Remap::kLazy;
  } else if (options.vmm_remap == "tight") {
    remap_ = Remap::kTight;
  } else {
    moved_per_created_ = ParseDial(options.vmm_remap);
  }
}

std::size_t VmmPolicy::HandleBytes(std::size_t room,
                                   std::size_t missing) const {
  const double part = std::min(
      1.0, static_cast<double>(room) / static_cast<double>(kAmpleRoomBytes));
  const auto bytes = static_cast<std::size_t>(
      part * part * static_cast<double>(kMostHandleBytes));
  return std::min(std::max({vmm::WholePages(bytes), kPageBytes,
                            AlignUp(missing / kMostHandles, kPageBytes)}),
                  most_handle_bytes_);
}

std::size_t VmmPolicy::QuantumBytes(std::size_t handle_bytes, std::size_t room,
                                    std::size_t reserved) {
  return std::max(std::min(handle_bytes, kQuantumBytes),
                  std::min(room, reserved) / kQuantumDivisor);
}

std::size_t VmmPolicy::RangeBytes(std::size_t device_bytes,
                                  std::size_t last_bytes, std::size_t size,
                                  bool is_small) {
  const std::size_t first =
      device_bytes / (is_small ? kFirstSmallRangeDivisor : kFirstRangeDivisor);
  const std::size_t bytes = last_bytes != 0 ? 2 * last_bytes : first;
  return AlignUp(std::max(bytes, LeastRangeBytes(size)), kPageBytes);
}

std::size_t VmmPolicy::LeastRangeBytes(std::size_t size) {
  return AlignUp(size, kPageBytes) + 2 * kPageBytes;
}

bool VmmPolicy::IsSettled(const Held& held) {
  const std::size_t moved =
      held.moved_bytes + held.moves * (held.reserved_bytes / kMoveDivisor);
  return static_cast<double>(moved) >
         kMostMoved * static_cast<double>(held.reserved_bytes);
}

bool VmmPolicy::MayLend(const Held& held) {
  return !IsSettled(held) ||
         held.created_while_lent_bytes <= held.reserved_bytes / kLendingDivisor;
}

bool VmmPolicy::PrefersFree(std::size_t missing, std::size_t room,
                            const Held& held, std::size_t credit) const {
  if (remap_ != Remap::kDial) return remap_ == Remap::kTight;
  if (IsSettled(held)) return false;
  Held then = held;
  then.reserved_bytes += missing;
  // With less room, a growth creates as much as it can.
  const double least_room = (IsAmple(then) ? kLeastAmpleRoom : kLeastRoom) *
                            static_cast<double>(held.reserved_bytes);
  return static_cast<double>(room) >= least_room &&
         credit < PriceOf(missing, then);
}

}  // namespace strata
