#ifndef STRATA_PLATFORM_CHECK_USE_RULES_H_
#define STRATA_PLATFORM_CHECK_USE_RULES_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "strata/platform/check/hazard_report.h"
#include "strata/platform/check/order_clock.h"
#include "strata/platform/check/shadow_memory.h"

namespace strata::check {

// Receives the hazards.
using HazardSink = std::function<void(HazardReport)>;

// The rules for two uses of the same physical bytes, in streams or among the
// nodes of a graph.
//
// Model: a use comes after every use in another life of the bytes (§5.2). If
//   one of the two writes, a use also comes after the uses of its own life
//   through other addresses (V9). The order of uses of one life at one address
//   is not checked, except for uses by launches of the graph that owns the
//   block (K6).
// Cost: linear in the uses that the segment stores.
// Source: cuda_semantics.md §5.2, V9, K6.

// `before` covers the predecessors of `use`.
void CheckUse(const MemorySegment& segment, const MemoryUse& use,
              const OrderClock& before, const ReportedRange& range,
              const HazardSink& sink);
// The allocation of a block comes after all uses of the bytes so far. For host
// memory, only uses that the host has waited for are before it (M7).
void CheckHandOut(const MemorySegment& segment, const AccessSite& hand_out,
                  const OrderClock& before, bool is_host,
                  const ReportedRange& range, const HazardSink& sink);
// The free of memory. `kind` is the hazard if the memory is still in use.
// Checks the uses through `region`; all uses if `region` is 0.
void CheckGivenBack(const MemorySegment& segment, const AccessSite& free,
                    const OrderClock& before, HazardKind kind,
                    std::uint64_t region, const ReportedRange& range,
                    const HazardSink& sink);

// "stream 7 never waited for stream 3's memset_async; the block was freed in
// stream 5 without RecordStream(3)".
std::string MissingOrder(const MemoryUse& first, const AccessSite& second);

// A copy of the life for a report.
std::optional<Lifetime> LifeOf(const std::shared_ptr<BlockLife>& life);

}  // namespace strata::check

#endif  // STRATA_PLATFORM_CHECK_USE_RULES_H_
