#ifndef STRATA_PLATFORM_CHECK_HAZARD_REPORT_H_
#define STRATA_PLATFORM_CHECK_HAZARD_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "strata/platform/calls/device_call.h"

namespace strata::check {

// The ways in which the order of two uses of memory can be wrong.
enum class HazardKind : std::uint8_t {
  kUseAfterFree,       // the use may run after the memory was freed
  kUseBeforeAlloc,     // the use may run before the memory is allocated
  kReuseRace,          // memory reused while an earlier use may still run
  kFreeInUse,          // memory freed at once while a use may still run
  kUnmapInUse,         // memory unmapped while a use may still run
  kHostReuse,          // host memory allocated while a device may use it
  kAliasIncoherent,    // one memory at two addresses, one use writes, no order
  kDanglingOperand,    // a launched graph uses freed or foreign memory
  kGraphUseAfterFree,  // as kUseAfterFree, between nodes of a graph
  kPoolOverlap,        // graphs that share memory launched without an order
  kCapturedEvent,      // an event of a capture used as proof of completion
  kOverlap,            // a block allocated inside another live block
};

// "use-after-free". The result is static.
const char* HazardKindName(HazardKind kind);

// One side of a hazard: a call or an event beside the calls.
struct AccessSite {
  std::uint64_t number = 0;  // of the record, from 1
  DeviceCall call = DeviceCall::kUse;
  std::int32_t device = 0;
  std::uint64_t stream_uid = 0;  // 0: the host
  std::uint64_t thread = 0;
  std::uint64_t node = 0;  // of a graph
  std::uint64_t ptr = 0;
  std::uint64_t bytes = 0;
  std::uint64_t time_ns = 0;
};

// The time from the allocation to the free of a memory range, for one owner.
struct Lifetime {
  std::uint64_t ptr = 0;
  std::uint64_t bytes = 0;
  AccessSite allocated;
  std::optional<AccessSite> freed;
  // The streams known to the allocator: where the block was allocated and
  // freed, and the streams that it was marked for.
  std::vector<std::uint64_t> streams;
};

// Two accesses without the order that they require.
struct HazardReport {
  HazardKind kind = HazardKind::kReuseRace;
  AccessSite first;   // the earlier call
  AccessSite second;  // the later one
  // The lives of the memory at the first and at the second access; nullopt:
  // unknown.
  std::optional<Lifetime> first_life;
  std::optional<Lifetime> second_life;
  // The bytes that both access, at the addresses of the second access.
  std::uint64_t ptr = 0;
  std::uint64_t bytes = 0;
  std::string missing;  // the missing order, in words
};

// "mem_free (record 12) by thread 1", "memset_async (record 9, node 0x2) in
// stream 7 by thread 1".
std::string ToString(const AccessSite& access);
// Several lines, each with a line end.
std::string ToString(const HazardReport& report);

}  // namespace strata::check

#endif  // STRATA_PLATFORM_CHECK_HAZARD_REPORT_H_
