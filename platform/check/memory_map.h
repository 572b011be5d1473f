#ifndef STRATA_PLATFORM_CHECK_MEMORY_MAP_H_
#define STRATA_PLATFORM_CHECK_MEMORY_MAP_H_

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "strata/platform/check/hazard_report.h"
#include "strata/platform/check/order_clock.h"

namespace strata::check {

enum class RegionKind : std::uint8_t {
  kDevice,   // from MemAlloc or MallocManaged
  kHost,     // pinned or registered: the host accesses it without a stream
  kPool,     // from MallocFromPoolAsync: exists from a point of a stream on
  kGraph,    // from a node of a graph: exists from each launch on
  kMapping,  // physical memory behind reserved addresses
};

// An address range with memory, or with memory in the past.
struct MemoryRegion {
  std::uint64_t id = 0;  // never reused
  RegionKind kind = RegionKind::kDevice;
  Lifetime life;
  // The physical memory: an offset in a space (shadow_memory.h).
  std::uint64_t space = 0;
  std::uint64_t offset = 0;
  // The operation that allocates the memory: for kPool, and for kGraph while
  // the memory exists.
  std::optional<Epoch> begins;
  // kGraph: the id of the graph, the node that allocates the memory, and
  // whether another node of the graph frees it.
  std::uint64_t graph = 0;
  Epoch node;
  bool freed_in_graph = false;

  std::uint64_t end() const { return life.ptr + life.bytes; }
};

// The memory behind each address, rebuilt from the calls that create and map
// it.
//
// Model: memory known by its addresses is its own physical memory. Mapped
//   memory is the memory of its handle, also at two addresses at once. An
//   imported handle counts as memory of its own. The latest kMaxGone freed
//   regions are remembered, until their addresses are reused.
// Threads: externally synchronised.
// Cost: the depth of a tree.
class MemoryMap {
 public:
  static constexpr std::size_t kMaxGone = 4096;

  // A part of a range that lies in one region.
  struct Piece {
    std::shared_ptr<MemoryRegion> region;
    std::uint64_t ptr = 0;
    std::uint64_t bytes = 0;

    std::uint64_t offset() const {
      return region->offset + (ptr - region->life.ptr);
    }
  };

  // Replaces the regions at these addresses.
  std::shared_ptr<MemoryRegion> Add(RegionKind kind, std::uint64_t ptr,
                                    std::uint64_t bytes, const AccessSite& by);
  // The region that starts at `ptr`, or null.
  std::shared_ptr<MemoryRegion> Find(std::uint64_t ptr) const;
  // The regions of mappings in the range.
  std::vector<std::shared_ptr<MemoryRegion>> FindMappings(
      std::uint64_t ptr, std::uint64_t bytes) const;
  // Removes the memory. Returns the space that this destroyed, or 0.
  std::uint64_t Remove(const std::shared_ptr<MemoryRegion>& region,
                       const AccessSite& by);

  // The parts of the range that have memory, by address.
  std::vector<Piece> Pieces(std::uint64_t ptr, std::uint64_t bytes) const;
  // The last region that overlapped the range, or null.
  std::shared_ptr<const MemoryRegion> FindGone(std::uint64_t ptr,
                                               std::uint64_t bytes) const;

  // Physical memory for mappings. Retain makes `handle` a handle of the memory
  // mapped at `ptr`. Release returns the space that it destroyed, or 0.
  void CreatePhysical(std::uint64_t handle);
  void RetainPhysical(std::uint64_t handle, std::uint64_t ptr);
  std::uint64_t ReleasePhysical(std::uint64_t handle);
  // Returns null if there is no such memory.
  std::shared_ptr<MemoryRegion> Map(std::uint64_t ptr, std::uint64_t bytes,
                                    std::uint64_t handle, const AccessSite& by);

 private:
  struct Physical {
    std::uint64_t references = 1;  // of the handle
    std::uint64_t mappings = 0;
  };
  using Regions = std::map<std::uint64_t, std::shared_ptr<MemoryRegion>>;

  static void EraseRange(Regions* regions, std::uint64_t ptr,
                         std::uint64_t bytes);
  std::uint64_t DropIfUnused(std::uint64_t space);

  Regions live_;  // by address
  Regions gone_;  // by address
  std::deque<std::shared_ptr<MemoryRegion>> gone_order_;
  std::unordered_map<std::uint64_t, std::uint64_t> handles_;  // to spaces
  std::unordered_map<std::uint64_t, Physical> physical_;      // by space
  std::uint64_t last_id_ = 0;
  std::uint64_t last_space_ = 0;
};

}  // namespace strata::check

#endif  // STRATA_PLATFORM_CHECK_MEMORY_MAP_H_
