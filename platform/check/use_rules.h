#ifndef STRATA_PLATFORM_CHECK_USE_RULES_H_
#define STRATA_PLATFORM_CHECK_USE_RULES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "strata/platform/check/hazard_report.h"
#include "strata/platform/check/order_clock.h"
#include "strata/platform/check/shadow_memory.h"

namespace strata {

// Where hazards go.
using HazardSink = std::function<void(HazardReport)>;

// The bytes that a report is about.
struct ReportedRange {
  std::uint64_t ptr = 0;
  std::uint64_t bytes = 0;
};

// The rules for two uses of the same physical bytes, in streams or among the
// nodes of a graph.
//
// Model: a use comes after every use in another life of the bytes (§5.2), and
//   after those of its own life through other addresses if one of the two
//   writes (V9). The order of uses of one life at one address is the program's
//   affair, except for those by launches of the graph whose block it is (K6).
// Cost: linear in the uses that the segment remembers.
// Source: cuda_semantics.md §5.2, V9, K6.

// `before` covers what comes before `use`.
void CheckUse(const MemorySegment& segment, const MemoryUse& use,
              const OrderClock& before, const ReportedRange& range,
              const HazardSink& sink);
// The hand-out of a block: after all that any use of the bytes so far. For host
// memory only what the host has seen counts (M7).
void CheckHandOut(const MemorySegment& segment, const AccessSite& hand_out,
                  const OrderClock& before, bool is_host,
                  const ReportedRange& range, const HazardSink& sink);
// Memory that is given back, with `kind` for what is still in use: what was
// used through `region`, or anything if that is 0.
void CheckGivenBack(const MemorySegment& segment, const AccessSite& free,
                    const OrderClock& before, HazardKind kind,
                    std::uint64_t region, const ReportedRange& range,
                    const HazardSink& sink);

// "stream 7 never waited for stream 3's memset_async; the block was freed in
// stream 5 without RecordStream(3)".
std::string MissingOrder(const MemoryUse& first, const AccessSite& second);

// A copy of what a report says of a life.
std::optional<Lifetime> LifeOf(const std::shared_ptr<BlockLife>& life);

}  // namespace strata

#endif  // STRATA_PLATFORM_CHECK_USE_RULES_H_
