#ifndef STRATA_PLATFORM_HOST_SYSTEM_H_
#define STRATA_PLATFORM_HOST_SYSTEM_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "strata/platform/require_cxx20.h"

namespace strata {

// What Strata asks of the host's operating system, besides plain memory. A test
// hands in its own.
//
// Errors: as errno values; 0 is success.
// Threads: any thread.
class HostSystem {
 public:
  HostSystem() = default;
  HostSystem(const HostSystem&) = delete;
  HostSystem& operator=(const HostSystem&) = delete;
  virtual ~HostSystem() = default;

  // Memory that this process may hope for: the machine's, or what its control
  // group (container) is allowed if that is less. 0: unknown.
  virtual std::uint64_t MemoryBytes() const = 0;
  // The NUMA nodes that have memory, ascending; empty: the system tells none.
  virtual std::vector<int> NumaNodes() const = 0;

  // Asks for the pages of [data, data + bytes), which nobody has touched yet,
  // to come from `node` as long as it has some. `data` is the start of a page.
  virtual int PreferNode(void* data, std::size_t bytes, int node) noexcept = 0;
  // Keeps the pages in memory. Locks do not nest; `data` and `bytes` are
  // multiples of the page size.
  virtual int Lock(void* data, std::size_t bytes) noexcept = 0;
  virtual int Unlock(void* data, std::size_t bytes) noexcept = 0;
};

// Linux: /sys, mbind(2), mlock(2). `sys_root` is where /sys is, for tests.
std::shared_ptr<HostSystem> MakeHostSystem(
    const std::string& sys_root = "/sys");

// "0-2,5" as the kernel writes it; empty if `text` is not such a list.
std::vector<int> ParseNodeList(const std::string& text);

std::size_t HostPageBytes();

}  // namespace strata

#endif  // STRATA_PLATFORM_HOST_SYSTEM_H_
