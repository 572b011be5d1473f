#ifndef STRATA_PLATFORM_CHECK_HAZARD_REPORT_H_
#define STRATA_PLATFORM_CHECK_HAZARD_REPORT_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "strata/platform/calls/call_record.h"

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

// One side of a hazard: a call or an event beside the calls. Stream 0 is the
// host.
struct AccessSite : CallRecord {
  std::uint64_t number = 0;  // of the record, from 1
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

// The bytes of a report.
struct ReportedRange {
  std::uint64_t ptr = 0;
  std::uint64_t bytes = 0;
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

using HazardHandler = std::function<void(const HazardReport&)>;

// The hazards found so far.
//
// Model: one hazard for each kind and pair of records. The first kMaxKept are
//   stored; all are counted and reported to the handler.
// Threads: externally synchronised. The handler runs in the thread that finds
//   the hazard.
class HazardLog {
 public:
  static constexpr std::size_t kMaxKept = 64;

  explicit HazardLog(HazardHandler handler) : handler_(std::move(handler)) {}

  void Add(HazardReport report);
  const std::vector<HazardReport>& kept() const { return kept_; }
  std::uint64_t count() const { return count_; }

 private:
  struct Pair {
    HazardKind kind;
    std::uint64_t first;
    std::uint64_t second;

    friend bool operator==(const Pair&, const Pair&) = default;
  };

  const HazardHandler handler_;
  std::vector<HazardReport> kept_;
  std::uint64_t count_ = 0;
  std::vector<Pair> latest_;  // the pairs of the latest second record
};

}  // namespace strata::check

#endif  // STRATA_PLATFORM_CHECK_HAZARD_REPORT_H_
