#include "strata/platform/sim/faults/sim_leaks.h"

namespace strata::sim {
namespace {

void AddCount(const char* what, std::uint64_t count, std::string* text) {
  if (count == 0) return;
  if (!text->empty()) *text += ", ";
  *text += std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

void AddRanges(const char* what, std::uint64_t count, std::uint64_t bytes,
               std::string* text) {
  if (count == 0) return;
  AddCount(what, count, text);
  *text += " (" + std::to_string(bytes) + " bytes)";
}

}  // namespace

std::string ToString(const SimLeaks& leaks) {
  std::string text;
  AddRanges("device allocation", leaks.allocations, leaks.allocation_bytes,
            &text);
  AddRanges("pool block", leaks.pool_blocks, leaks.pool_bytes, &text);
  AddCount("pool", leaks.pools, &text);
  AddRanges("pinned range", leaks.pinned_ranges, leaks.pinned_bytes, &text);
  AddRanges("registered range", leaks.registered_ranges, leaks.registered_bytes,
            &text);
  AddRanges("managed range", leaks.managed_ranges, leaks.managed_bytes, &text);
  AddRanges("reserved range", leaks.reservations, leaks.reservation_bytes,
            &text);
  AddRanges("memory block", leaks.memory_blocks, leaks.memory_block_bytes,
            &text);
  AddCount("memory handle reference", leaks.memory_references, &text);
  AddRanges("mapping", leaks.mappings, leaks.mapped_bytes, &text);
  AddCount("stream", leaks.streams, &text);
  AddCount("event", leaks.events, &text);
  AddCount("capture", leaks.captures, &text);
  AddCount("graph", leaks.graphs, &text);
  AddCount("instantiated graph", leaks.graph_execs, &text);
  AddRanges("graph allocation", leaks.graph_allocations,
            leaks.graph_allocation_bytes, &text);
  AddCount("user object", leaks.user_objects, &text);
  return text;
}

}  // namespace strata::sim
