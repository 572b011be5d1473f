#ifndef STRATA_PLATFORM_SIM_MEMORY_SHARE_TABLE_H_
#define STRATA_PLATFORM_SIM_MEMORY_SHARE_TABLE_H_

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "strata/base/require_cxx20.h"

namespace strata::sim {

// Exported forms of objects within the process: descriptors that name an object
// until their last copy is closed, and 64 opaque bytes that name it as long as
// it lives.
//
// Model: a descriptor is the write end of a pipe. Its inode identifies the
//   object. The read end stays here and shows when no copy is left. The caller
//   numbers the objects.
// Threads: externally synchronised.
// Cost: a few system calls.
class ShareTable {
 public:
  using Object = std::uint64_t;
  using Fabric = std::array<std::uint8_t, 64>;

  ShareTable() = default;
  ShareTable(const ShareTable&) = delete;
  ShareTable& operator=(const ShareTable&) = delete;
  ~ShareTable();

  // Returns a descriptor for the object, which the caller closes. -1 if the
  // process has no descriptor left.
  int Export(Object object);
  // The object of the descriptor that `fd` is a copy of, if any.
  std::optional<Object> Find(int fd) const;
  // True if the object has descriptors, as of the last Collect.
  bool IsExported(Object object) const { return counts_.count(object) != 0; }
  // Removes the descriptors that were closed.
  void Collect();

  Fabric ToFabric(Object object) const;
  // The object that the bytes name, if ToFabric of this table created them.
  std::optional<Object> FromFabric(const Fabric& bytes) const;

 private:
  struct Entry {
    Object object;
    int reading_end;
  };
  using Inode = std::pair<dev_t, ino_t>;

  std::map<Inode, Entry> entries_;
  // Number of entries per object.
  std::unordered_map<Object, std::uint64_t> counts_;
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_MEMORY_SHARE_TABLE_H_
