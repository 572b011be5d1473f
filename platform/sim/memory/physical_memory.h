#ifndef STRATA_PLATFORM_SIM_MEMORY_PHYSICAL_MEMORY_H_
#define STRATA_PLATFORM_SIM_MEMORY_PHYSICAL_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/faults/sim_leaks.h"
#include "strata/platform/sim/memory/frame_table.h"
#include "strata/platform/sim/memory/share_table.h"
#include "strata/platform/status.h"

namespace strata::sim {

class DeviceMemory;
class FrameStore;

// The physical memory for mappings of one platform's devices, and its handles.
//
// Model: a handle is valid until each of its references is released.
//   CreateMemory, ImportMemory and RetainMemory add one reference each.
//   Memory exists until its handles have no references and no mappings, and all
//   exported descriptors are closed (cuda_semantics.md V4, V11, V12). Handle
//   values are never reused.
//   If a device stores bytes, its descriptors are valid in other processes, and
//   their imports keep the memory too. The memory belongs to the device that
//   created it, and counts only there.
// Errors: the Status of the Device entry point that each method implements.
// Threads: externally synchronised.
// Cost: O(1), plus the allocation of frames.
class PhysicalMemory {
 public:
  // The memory of a handle.
  struct Block {
    int device = 0;
    std::uint64_t bytes = 0;
    FrameShare frames;
    ShareType share = ShareType::kNone;
    std::uint64_t handles = 0;  // handles with references or mappings
    // Offset in ForeignFrames of another process's memory; 0: own memory.
    std::uint64_t foreign_offset = 0;
  };

  // `fabric`: fabric handles may share memory. `rdma`: memory may be created
  // for network cards.
  explicit PhysicalMemory(bool fabric, bool rdma = false)
      : fabric_(fabric), rdma_(rdma) {}
  bool fabric() const { return fabric_; }
  bool rdma() const { return rdma_; }

  // Adds the memory of the next device; it outlives the last call of this
  // object.
  void AddDevice(DeviceMemory* memory) { devices_.push_back(memory); }
  int device_count() const { return static_cast<int>(devices_.size()); }
  const DeviceMemory& device(int ordinal) const {
    return *devices_[static_cast<std::size_t>(ordinal)];
  }

  // kSuccess, or the reason why memory cannot have these properties.
  Status Check(const MemProperties& properties) const;
  Status Create(std::uint64_t bytes, const MemProperties& properties,
                MemHandle* handle);
  Status Release(MemHandle handle);
  Status Export(MemHandle handle, ShareType type, Shareable* shareable);
  Status Import(ShareType type, const Shareable& shareable, MemHandle* handle);

  // The memory of a handle with references, or null.
  const Block* FindReferenced(MemHandle handle) const;
  // The memory of a handle with references or mappings.
  const Block& Mapped(MemHandle handle) const;
  // The contiguous bytes of the block from `offset` on.
  PhysicalRun Locate(const Block& block, std::uint64_t offset) const;
  // A mapping begins or ends. The end of the last one may free the memory.
  void AddMapping(MemHandle handle) { ++handles_.at(handle.value).mappings; }
  void DropMapping(MemHandle handle);
  // Adds a reference to a handle that has mappings.
  void AddReference(MemHandle handle) {
    ++handles_.at(handle.value).references;
  }

  // Frees exported memory after its last descriptor was closed.
  void FreeClosed();
  // Adds the memory that `device` created and that still exists.
  void AddLeaks(int device, SimLeaks* leaks) const;

 private:
  using BlockId = std::uint64_t;
  struct Handle {
    BlockId block;
    std::uint64_t references = 0;
    std::uint64_t mappings = 0;
  };

  MemHandle NewHandle(BlockId block);
  FrameStore* StoreOf(const Block& block) const;
  // -1 if the process has no descriptor left.
  int ExportToFile(BlockId id, const Block& block);
  bool IsExported(BlockId id, const Block& block) const;
  // The block of a descriptor of this platform, or of another one; nullopt if
  // it is neither.
  std::optional<BlockId> FindByFile(int fd) const;
  std::optional<BlockId> AddForeign(int fd);
  void DropHandleIfUnused(std::uint64_t value);
  void DropBlockIfUnused(BlockId id);

  const bool fabric_;
  const bool rdma_;
  std::vector<DeviceMemory*> devices_;
  std::unordered_map<BlockId, Block> blocks_;
  std::unordered_map<std::uint64_t, Handle> handles_;
  ShareTable shares_;
  std::set<BlockId> exported_only_;  // blocks without handles
  BlockId last_block_ = 0;
  std::uint64_t last_handle_ = 0;
};

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_MEMORY_PHYSICAL_MEMORY_H_
