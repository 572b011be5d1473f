#ifndef STRATA_PLATFORM_SIM_PHYSICAL_MEMORY_H_
#define STRATA_PLATFORM_SIM_PHYSICAL_MEMORY_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <unordered_map>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/frame_table.h"
#include "strata/platform/sim/share_table.h"
#include "strata/platform/sim/sim_leaks.h"
#include "strata/platform/status.h"

namespace strata {

class DeviceMemory;
class FrameStore;

// The physical memory that the devices of one platform have for mapping, and
// the handles to it.
//
// Model: a handle is good until each of its references has been released
//   (CreateMemory, ImportMemory and RetainMemory give one each). Memory is
//   there until its handles have no references and no mappings and all
//   descriptors that it was exported as are closed (cuda_semantics.md V4, V11,
//   V12). Values of handles are never used again. Where a device keeps bytes,
//   a descriptor is good in other processes, and their imports keep the memory
//   too; it is memory of the device that made it, and counts there alone.
// Errors: the Status of the Device entry point that each method serves.
// Threads: externally synchronised.
// Cost: O(1), plus what taking frames costs.
class PhysicalMemory {
 public:
  // What a handle stands for.
  struct Block {
    int device = 0;
    std::uint64_t bytes = 0;
    FrameShare frames;
    ShareType share = ShareType::kNone;
    std::uint64_t handles = 0;  // with references or mappings
    // Where the memory of another process is: ForeignFrames; 0: it is ours.
    std::uint64_t foreign_offset = 0;
  };

  // With `fabric`, memory may be shared by fabric handles; with `rdma`, it may
  // be created for network cards.
  explicit PhysicalMemory(bool fabric, bool rdma = false)
      : fabric_(fabric), rdma_(rdma) {}
  bool fabric() const { return fabric_; }
  bool rdma() const { return rdma_; }

  // The memory of the next device, which is there until the last call.
  void AddDevice(DeviceMemory* memory) { devices_.push_back(memory); }
  int device_count() const { return static_cast<int>(devices_.size()); }
  const DeviceMemory& device(int ordinal) const {
    return *devices_[static_cast<std::size_t>(ordinal)];
  }

  // kSuccess, or why no memory can have these properties.
  Status Check(const MemProperties& properties) const;
  Status Create(std::uint64_t bytes, const MemProperties& properties,
                MemHandle* handle);
  Status Release(MemHandle handle);
  Status Export(MemHandle handle, ShareType type, Shareable* shareable);
  Status Import(ShareType type, const Shareable& shareable, MemHandle* handle);

  // The memory of a handle that has references, or null.
  const Block* FindReferenced(MemHandle handle) const;
  // The same for a handle that may only have mappings.
  const Block& Mapped(MemHandle handle) const;
  // Where the block's bytes from `offset` on are, as far as they lie next to
  // each other.
  PhysicalRun Locate(const Block& block, std::uint64_t offset) const;
  // A mapping begins, or ends; an ended one may end the memory.
  void AddMapping(MemHandle handle);
  void DropMapping(MemHandle handle);
  // One more reference to a handle that has mappings.
  void AddReference(MemHandle handle);

  // Frees memory that only descriptors closed since were keeping.
  void FreeClosed();
  // Adds what `device` has been asked for and still has.
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
  // -1 if the process can have no more descriptors.
  int ExportToFile(BlockId id, const Block& block);
  bool IsExported(BlockId id, const Block& block) const;
  // The block of a descriptor of this platform, or of another one; nothing if
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

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_PHYSICAL_MEMORY_H_
