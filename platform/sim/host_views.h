#ifndef STRATA_PLATFORM_SIM_HOST_VIEWS_H_
#define STRATA_PLATFORM_SIM_HOST_VIEWS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/frame_table.h"

namespace strata {

// A part of a file that holds a device's bytes.
struct FilePart {
  int fd = -1;
  PhysicalRun run;
};

// Ranges of device memory whose frames are scattered, mapped once more so that
// they lie next to each other on the host.
//
// Model: a view is made when it is first asked for and kept until any of its
//   addresses is dropped. Then the host's addresses fault, or belong to another
//   mapping.
// Threads: externally synchronised.
// Cost: Make: a system call for each part; Drop: O(views), nothing without.
class HostViews {
 public:
  HostViews() = default;
  HostViews(const HostViews&) = delete;
  HostViews& operator=(const HostViews&) = delete;
  ~HostViews();

  // The view of [ptr, ptr + bytes) made before, or null.
  void* Find(DevicePtr ptr, std::uint64_t bytes) const;
  // Makes it of `parts`, which have `bytes` bytes in all and lie like `ptr` in
  // their pages but for the first one's start and the last one's end. Null if
  // the host refuses.
  void* Make(DevicePtr ptr, std::uint64_t bytes,
             const std::vector<FilePart>& parts);
  // The memory behind [ptr, ptr + bytes) is gone.
  void Drop(DevicePtr ptr, std::uint64_t bytes);

 private:
  struct View {
    char* base;  // of the first page
    std::uint64_t mapped_bytes;
  };
  using Range = std::pair<DevicePtr, std::uint64_t>;  // address, bytes

  std::map<Range, View> views_;
};

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_HOST_VIEWS_H_
