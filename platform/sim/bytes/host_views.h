#ifndef STRATA_PLATFORM_SIM_BYTES_HOST_VIEWS_H_
#define STRATA_PLATFORM_SIM_BYTES_HOST_VIEWS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/memory/frame_table.h"

namespace strata::sim {

// A part of a file that holds a device's bytes.
struct FilePart {
  int fd = -1;
  PhysicalRun run;
};

// Ranges of device memory with scattered frames, mapped once more at contiguous
// addresses of the host.
//
// Model: the first request creates a view. It exists until any of its addresses
//   is dropped. After that its host addresses fault, or belong to another
//   mapping.
// Threads: externally synchronised.
// Cost: Make: one system call per part. Drop: O(views); nothing without views.
class HostViews {
 public:
  HostViews() = default;
  HostViews(const HostViews&) = delete;
  HostViews& operator=(const HostViews&) = delete;
  ~HostViews();

  // The existing view of [ptr, ptr + bytes), or null.
  void* Find(DevicePtr ptr, std::uint64_t bytes) const;
  // Creates the view from `parts`, which have `bytes` bytes in total. Only the
  // first part may start within a page, at the page offset of `ptr`, and only
  // the last may end within one. Null if the host refuses.
  void* Make(DevicePtr ptr, std::uint64_t bytes,
             const std::vector<FilePart>& parts);
  // The memory behind [ptr, ptr + bytes) was freed.
  void Drop(DevicePtr ptr, std::uint64_t bytes);

 private:
  struct View {
    char* base;  // start of the first page
    std::uint64_t mapped_bytes;
  };
  using Range = std::pair<DevicePtr, std::uint64_t>;  // address, bytes

  std::map<Range, View> views_;
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_BYTES_HOST_VIEWS_H_
