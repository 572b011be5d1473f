#ifndef STRATA_PLATFORM_HOST_HOST_SYSTEM_H_
#define STRATA_PLATFORM_HOST_HOST_SYSTEM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "strata/base/require_cxx20.h"

namespace strata {

// The services of the host's operating system that Strata uses, besides plain
// memory. Tests may pass their own implementation.
//
// Errors: as errno values; 0 is success.
// Threads: any thread.
class HostSystem {
 public:
  HostSystem() = default;
  HostSystem(const HostSystem&) = delete;
  HostSystem& operator=(const HostSystem&) = delete;
  virtual ~HostSystem() = default;

  // Memory that this process may use, in bytes: the memory of the machine, or
  // the limit of its control group (container) if that is less. 0: unknown.
  virtual std::uint64_t MemoryBytes() const = 0;
  // The NUMA nodes that have memory, ascending. Empty if the system does not
  // report them.
  virtual std::vector<int> NumaNodes() const = 0;

  // Asks the system to back [data, data + bytes) with pages of `node` as long
  // as the node has free pages. No byte of the range has been touched yet.
  // `data` is the start of a page.
  virtual int PreferNode(void* data, std::size_t bytes, int node) noexcept = 0;
  // Locks the pages into memory. Locks do not nest. `data` and `bytes` are
  // multiples of the page size.
  virtual int Lock(void* data, std::size_t bytes) noexcept = 0;
  virtual int Unlock(void* data, std::size_t bytes) noexcept = 0;
};

// Linux: /sys, mbind(2), mlock(2). `sys_root` is the path of /sys; tests pass
// another one.
std::shared_ptr<HostSystem> MakeHostSystem(
    const std::string& sys_root = "/sys");

// Parses a list as the kernel writes it: "0-2,5". Returns an empty vector if
// `text` is not such a list.
std::vector<int> ParseNodeList(const std::string& text);

std::size_t HostPageBytes();

}  // namespace strata

#endif  // STRATA_PLATFORM_HOST_HOST_SYSTEM_H_
