#ifndef STRATA_PLATFORM_SIM_GRAPHS_GRAPH_ACTION_H_
#define STRATA_PLATFORM_SIM_GRAPHS_GRAPH_ACTION_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <variant>

#include "strata/platform/device_work.h"
#include "strata/platform/memory_types.h"
#include "strata/platform/stream.h"

namespace strata::sim {

class SimGraph;
struct ReadCounter;

// The access of each device to the memory of an allocation, by device.
using GraphRights = std::shared_ptr<const std::map<int, Access>>;

// The action of a graph node when it runs. Operands are values: addresses, not
// the bytes at them (cuda_semantics.md C25). The device of an operand is its
// device at the capture; -1: the host.
struct EmptyAction {};
// The source of a copy whose pageable source was read when it was submitted,
// for a target that stores none of the bytes.
inline constexpr DevicePtr kSourceIsRead = 0;

struct CopyAction {
  DevicePtr target = 0;
  DevicePtr source = 0;
  std::size_t bytes = 0;
  int target_device = -1;
  int source_device = -1;
  ReadCounter* reads = nullptr;
};
struct FillAction {
  DevicePtr ptr = 0;
  int value = 0;
  std::size_t bytes = 0;
  int ptr_device = -1;
};
struct HostAction {
  HostFunction function = nullptr;
  void* argument = nullptr;
};
struct WorkAction {
  std::array<WorkRange, kMaxWorkRanges> ranges;
  std::size_t count = 0;
  std::uint64_t pattern = 0;
};
struct KernelAction {
  std::array<WorkRange, kMaxWorkRanges> ranges;
  std::size_t count = 0;
  HostKernel kernel = nullptr;
  void* argument = nullptr;
};
struct RecordAction {
  Event event;
};
struct WaitAction {
  Event event;
};
struct AllocAction {
  DevicePtr ptr = 0;
  std::uint64_t bytes = 0;
  GraphRights rights;
};
struct FreeAction {
  DevicePtr ptr = 0;
};

using GraphAction =
    std::variant<EmptyAction, CopyAction, FillAction, HostAction, WorkAction,
                 KernelAction, RecordAction, WaitAction, AllocAction,
                 FreeAction>;

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_GRAPHS_GRAPH_ACTION_H_
