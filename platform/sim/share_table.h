#ifndef STRATA_PLATFORM_SIM_SHARE_TABLE_H_
#define STRATA_PLATFORM_SIM_SHARE_TABLE_H_

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "strata/platform/require_cxx20.h"

namespace strata {

// What exported objects travel as within the process: descriptors that stand
// for an object until the last copy of them is closed, and 64 opaque bytes that
// stand for it as long as it lives.
//
// Model: a descriptor is the writing end of a pipe: its inode tells which
//   object it is, and the reading end, kept here, tells when no copy is left.
//   Objects are the caller's numbers.
// Threads: externally synchronised.
// Cost: a system call or a few.
class ShareTable {
 public:
  using Object = std::uint64_t;
  using Fabric = std::array<std::uint8_t, 64>;

  ShareTable() = default;
  ShareTable(const ShareTable&) = delete;
  ShareTable& operator=(const ShareTable&) = delete;
  ~ShareTable();

  // A descriptor for the object, which the caller closes; -1 if the process
  // can have no more.
  int Export(Object object);
  // The object that `fd` is a copy of a descriptor of, if it is one.
  std::optional<Object> Find(int fd) const;
  // Whether the object has descriptors, as far as Collect has found out.
  bool IsExported(Object object) const { return counts_.count(object) != 0; }
  // Forgets the descriptors that have been closed.
  void Collect();

  Fabric ToFabric(Object object) const;
  // The number in the bytes, if ToFabric of this table made them.
  std::optional<Object> FromFabric(const Fabric& bytes) const;

 private:
  struct Entry {
    Object object;
    int reading_end;
  };
  using Inode = std::pair<dev_t, ino_t>;

  std::map<Inode, Entry> entries_;
  std::unordered_map<Object, std::uint64_t> counts_;  // entries of an object
};

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_SHARE_TABLE_H_
