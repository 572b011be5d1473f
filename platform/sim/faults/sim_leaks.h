#ifndef STRATA_PLATFORM_SIM_FAULTS_SIM_LEAKS_H_
#define STRATA_PLATFORM_SIM_FAULTS_SIM_LEAKS_H_

#include <cstdint>
#include <string>

#include "strata/base/require_cxx20.h"

namespace strata::sim {

// Objects that callers of one simulated device created and did not destroy.
struct SimLeaks {
  std::uint64_t allocations = 0;
  std::uint64_t allocation_bytes = 0;  // as requested
  std::uint64_t pool_blocks = 0;
  std::uint64_t pool_bytes = 0;  // in whole units of kPoolBlockBytes
  std::uint64_t pools = 0;       // handles, without the default pool
  std::uint64_t pinned_ranges = 0;
  std::uint64_t pinned_bytes = 0;
  std::uint64_t registered_ranges = 0;
  std::uint64_t registered_bytes = 0;
  std::uint64_t managed_ranges = 0;
  std::uint64_t managed_bytes = 0;
  std::uint64_t reservations = 0;  // of addresses, requested from this device
  std::uint64_t reservation_bytes = 0;
  std::uint64_t memory_blocks = 0;  // of this device, created for mapping
  std::uint64_t memory_block_bytes = 0;
  std::uint64_t memory_references = 0;  // to their handles
  std::uint64_t mappings = 0;           // of memory of this device
  std::uint64_t mapped_bytes = 0;
  std::uint64_t streams = 0;
  std::uint64_t events = 0;
  std::uint64_t captures = 0;  // in progress
  std::uint64_t graphs = 0;
  std::uint64_t graph_execs = 0;
  std::uint64_t graph_allocations = 0;  // by launches, not freed
  std::uint64_t graph_allocation_bytes = 0;
  std::uint64_t user_objects = 0;  // with destructors that are not due

  friend bool operator==(const SimLeaks&, const SimLeaks&) = default;
};

// "2 device allocations (4194304 bytes), 1 event"; empty if nothing leaked.
std::string ToString(const SimLeaks& leaks);

}  // namespace strata::sim

namespace strata {

using sim::SimLeaks;

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_FAULTS_SIM_LEAKS_H_
