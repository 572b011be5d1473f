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

namespace strata {

enum class RegionKind : std::uint8_t {
  kDevice,   // of MemAlloc or MallocManaged
  kHost,     // pinned or registered: the host touches it at once
  kPool,     // of MallocFromPoolAsync: there from a point of a stream on
  kGraph,    // of a node of a graph: there from each launch on
  kMapping,  // physical memory behind reserved addresses
};

// Addresses behind which there is, or was, memory.
struct MemoryRegion {
  std::uint64_t id = 0;  // never used again
  RegionKind kind = RegionKind::kDevice;
  Lifetime life;
  // The physical memory: an offset in a space (shadow_memory.h).
  std::uint64_t space = 0;
  std::uint64_t offset = 0;
  // kPool and, while it is there, kGraph: the operation that makes it.
  std::optional<Epoch> begins;
  // kGraph: which graph's, the node of it that makes the memory, and whether
  // another one frees it.
  std::uint64_t graph = 0;
  Epoch node;
  bool freed_in_graph = false;

  std::uint64_t end() const { return life.ptr + life.bytes; }
};

// What is behind which addresses, rebuilt from the calls that say so.
//
// Model: memory known by its addresses is its own physical memory; what is
//   mapped is that of its handle, also at two addresses at once. An imported
//   handle counts as memory of its own. Addresses whose memory is gone are
//   remembered, the latest kMaxGone of them, for as long as nobody else gets
//   them.
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

  // Replaces what is known of the addresses.
  std::shared_ptr<MemoryRegion> Add(RegionKind kind, std::uint64_t ptr,
                                    std::uint64_t bytes, const AccessSite& by);
  // The region that starts at `ptr`, or null.
  std::shared_ptr<MemoryRegion> Find(std::uint64_t ptr) const;
  // The regions of mappings in the range.
  std::vector<std::shared_ptr<MemoryRegion>> FindMappings(
      std::uint64_t ptr, std::uint64_t bytes) const;
  // The memory is gone. Returns the space that died with it, or 0.
  std::uint64_t Remove(const std::shared_ptr<MemoryRegion>& region,
                       const AccessSite& by);

  // The parts of the range behind which there is memory, by address.
  std::vector<Piece> Pieces(std::uint64_t ptr, std::uint64_t bytes) const;
  // A region that was behind any of the range last, or null.
  std::shared_ptr<const MemoryRegion> FindGone(std::uint64_t ptr,
                                               std::uint64_t bytes) const;

  // Physical memory for mappings. Retain makes `handle` one of what is mapped
  // at `ptr`; Release returns the space that died, or 0.
  void CreatePhysical(std::uint64_t handle);
  void RetainPhysical(std::uint64_t handle, std::uint64_t ptr);
  std::uint64_t ReleasePhysical(std::uint64_t handle);
  // Null if there is no such memory.
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

}  // namespace strata

#endif  // STRATA_PLATFORM_CHECK_MEMORY_MAP_H_
