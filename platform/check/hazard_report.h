#ifndef STRATA_PLATFORM_CHECK_HAZARD_REPORT_H_
#define STRATA_PLATFORM_CHECK_HAZARD_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "strata/platform/device_call.h"

namespace strata {

// What can be wrong with the order of two uses of memory.
enum class HazardKind : std::uint8_t {
  kUseAfterFree,       // the use may run after the memory was freed
  kUseBeforeAlloc,     // the use may run before the memory is there
  kReuseRace,          // memory reused while an earlier use may still run
  kFreeInUse,          // given back at once while a use may still run
  kUnmapInUse,         // the same, by unmapping it
  kHostReuse,          // host memory handed out while a device may use it
  kAliasIncoherent,    // one memory at two addresses, one use writes, no order
  kDanglingOperand,    // a launched graph names memory that is gone or others'
  kGraphUseAfterFree,  // the same as kUseAfterFree between nodes of a graph
  kPoolOverlap,        // graphs that share memory launched without an order
  kCapturedEvent,      // an event of a capture taken as proof of anything
  kOverlap,            // a block handed out while another one holds the memory
};

// "use-after-free". The result is static.
const char* HazardKindName(HazardKind kind);

// One side of a hazard: a call or an event beside the calls.
struct AccessSite {
  std::uint64_t number = 0;  // of the record, from 1
  DeviceCall call = DeviceCall::kUse;
  std::int32_t device = 0;
  std::uint64_t stream_uid = 0;  // 0: the host's
  std::uint64_t thread = 0;
  std::uint64_t node = 0;  // of a graph
  std::uint64_t ptr = 0;
  std::uint64_t bytes = 0;
  std::uint64_t time_ns = 0;
};

// From where to where memory was one owner's.
struct Lifetime {
  std::uint64_t ptr = 0;
  std::uint64_t bytes = 0;
  AccessSite allocated;
  std::optional<AccessSite> freed;
  // The streams that its allocator knows of: where it was allocated and freed,
  // and those that it was marked for.
  std::vector<std::uint64_t> streams;
};

// Two accesses that nothing puts in the order that they need.
struct HazardReport {
  HazardKind kind = HazardKind::kReuseRace;
  AccessSite first;   // the earlier call
  AccessSite second;  // the later one
  // Of the memory at the first and at the second access. Nothing: unknown.
  std::optional<Lifetime> first_life;
  std::optional<Lifetime> second_life;
  std::uint64_t ptr = 0;  // the bytes that both touch, as the second names them
  std::uint64_t bytes = 0;
  std::string missing;  // the order that is missing, in words
};

// "mem_free (record 12) by thread 1", "memset_async (record 9, node 0x2) in
// stream 7 by thread 1".
std::string ToString(const AccessSite& access);
// Some lines, the last one ended.
std::string ToString(const HazardReport& report);

}  // namespace strata

#endif  // STRATA_PLATFORM_CHECK_HAZARD_REPORT_H_
