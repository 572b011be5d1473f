#ifndef STRATA_TOOLS_PEERS_TF_TF_BFC_REGIONS_H_
#define STRATA_TOOLS_PEERS_TF_TF_BFC_REGIONS_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <vector>

#include "strata/platform/memory_types.h"

namespace strata::peers {

// The memory that a TfBfcPeer holds from the device, and for each 256 bytes the
// chunk that begins there.
//
// Model: a region's table has one entry per unit of 256 bytes; the entry is
//   zero if no chunk begins there. Its pages use memory only once they are
//   written; the original fills them.
// Threads: externally synchronised.
// Cost: logarithmic in the number of regions.
// Source: tf_bfc.md R24.
class TfBfcRegions {
 public:
  using Handle = std::size_t;
  static constexpr Handle kNone = SIZE_MAX;

  struct Region {
    DevicePtr begin = 0;
    std::size_t bytes = 0;

    DevicePtr end() const { return begin + bytes; }
  };

  void Add(DevicePtr begin, std::size_t bytes);
  // Removes the region that begins at `begin`.
  void Remove(DevicePtr begin);
  // By their ends, ascending.
  std::vector<Region> List() const;

  // The chunk that begins within 256 bytes before `address`, or kNone.
  Handle HandleOf(DevicePtr address) const;
  // `address` is in a region.
  void SetHandle(DevicePtr address, Handle handle);

 private:
  struct FreeTable {
    void operator()(Handle* table) const { std::free(table); }
  };
  struct Entry {
    Region region;
    std::unique_ptr<Handle[], FreeTable> handles;  // each plus 1; 0: kNone
  };

  Handle* CellOf(DevicePtr address) const;

  std::vector<Entry> entries_;  // by the end of the region
};

}  // namespace strata::peers

#endif  // STRATA_TOOLS_PEERS_TF_TF_BFC_REGIONS_H_
