#include "strata/platform/sim/memory/physical_memory.h"

#include <optional>
#include <utility>

#include "strata/platform/sim/memory/device_memory.h"

namespace strata::sim {

Status PhysicalMemory::Check(const MemProperties& properties) const {
  const Location& location = properties.location;
  // Host memory cannot be created (cuda_semantics.md V3: a bad location).
  if (location.kind != Location::Kind::kDevice || location.id < 0 ||
      location.id >= device_count()) {
    return Status::kInvalidValue;
  }
  if (properties.rdma && !rdma_) return Status::kNotSupported;
  switch (properties.share) {
    case ShareType::kNone:
    case ShareType::kPosixFd:
      return Status::kSuccess;
    case ShareType::kFabric:
      return fabric_ ? Status::kSuccess : Status::kNotPermitted;
  }
  return Status::kInvalidValue;
}

Status PhysicalMemory::Create(std::uint64_t bytes,
                              const MemProperties& properties,
                              MemHandle* handle) {
  if (bytes == 0 || bytes % kFrameBytes != 0) return Status::kInvalidValue;
  const Status valid = Check(properties);
  if (valid != Status::kSuccess) return valid;
  FreeClosed();
  Block block;
  block.device = properties.location.id;
  block.bytes = bytes;
  block.share = properties.share;
  DeviceMemory& memory = *devices_[static_cast<std::size_t>(block.device)];
  const Status taken = memory.TakeFrames(bytes, &block.frames);
  if (taken != Status::kSuccess) return taken;
  blocks_.emplace(++last_block_, std::move(block));
  *handle = NewHandle(last_block_);
  return Status::kSuccess;
}

Status PhysicalMemory::Release(MemHandle handle) {
  if (FindReferenced(handle) == nullptr) return Status::kInvalidValue;
  --handles_.at(handle.value).references;
  DropHandleIfUnused(handle.value);
  return Status::kSuccess;
}

Status PhysicalMemory::Export(MemHandle handle, ShareType type,
                              Shareable* shareable) {
  const Block* block = FindReferenced(handle);
  if (block == nullptr || type == ShareType::kNone || type != block->share) {
    return Status::kInvalidValue;
  }
  const BlockId id = handles_.at(handle.value).block;
  Shareable made;
  if (type == ShareType::kFabric) {
    made.fabric = shares_.ToFabric(id);
  } else {
    made.fd = ExportToFile(id, *block);
    if (made.fd < 0) return Status::kUnknown;
  }
  *shareable = made;
  return Status::kSuccess;
}

Status PhysicalMemory::Import(ShareType type, const Shareable& shareable,
                              MemHandle* handle) {
  std::optional<BlockId> id;
  if (type == ShareType::kPosixFd) {
    id = FindByFile(shareable.fd);
    if (!id) id = AddForeign(shareable.fd);
  } else if (type == ShareType::kFabric) {
    if (!fabric_) return Status::kNotPermitted;
    id = shares_.FromFabric(shareable.fabric);
  }
  if (!id || blocks_.count(*id) == 0) return Status::kInvalidValue;
  exported_only_.erase(*id);
  *handle = NewHandle(*id);
  return Status::kSuccess;
}

FrameStore* PhysicalMemory::StoreOf(const Block& block) const {
  return devices_[static_cast<std::size_t>(block.device)]->store();
}

int PhysicalMemory::ExportToFile(BlockId id, const Block& block) {
  FrameStore* const store = StoreOf(block);
  if (store == nullptr) return shares_.Export(id);
  if (block.foreign_offset != 0) {
    return store->foreign().Export(block.foreign_offset);
  }
  FrameRecord record;
  record.device = block.device;
  record.bytes = block.bytes;
  for (std::uint64_t offset = 0; offset < block.bytes;) {
    const PhysicalRun run = Locate(block, offset);
    record.runs.push_back(run);
    offset += run.bytes;
  }
  return store->exports().Export(id, record);
}

bool PhysicalMemory::IsExported(BlockId id, const Block& block) const {
  FrameStore* const store = StoreOf(block);
  return store == nullptr ? shares_.IsExported(id)
                          : store->exports().IsExported(id);
}

std::optional<PhysicalMemory::BlockId> PhysicalMemory::FindByFile(
    int fd) const {
  for (DeviceMemory* device : devices_) {
    if (device->store() == nullptr) continue;
    const auto found = device->store()->exports().Find(fd);
    if (found) return found;
  }
  return shares_.Find(fd);
}

std::optional<PhysicalMemory::BlockId> PhysicalMemory::AddForeign(int fd) {
  const std::optional<FrameRecord> record = FrameRecord::Read(fd);
  if (!record || record->device >= device_count()) return std::nullopt;
  Block block;
  block.device = record->device;
  block.bytes = record->bytes;
  block.share = ShareType::kPosixFd;
  FrameStore* const store = StoreOf(block);
  if (store == nullptr) return std::nullopt;
  const auto offset = store->foreign().Add(fd, *record);
  if (!offset) return std::nullopt;
  block.foreign_offset = *offset;
  blocks_.emplace(++last_block_, std::move(block));
  return last_block_;
}

PhysicalRun PhysicalMemory::Locate(const Block& block,
                                   std::uint64_t offset) const {
  if (block.foreign_offset != 0) {
    return {block.foreign_offset + offset, block.bytes - offset};
  }
  return device(block.device).Locate(block.frames, offset);
}

const PhysicalMemory::Block* PhysicalMemory::FindReferenced(
    MemHandle handle) const {
  const auto found = handles_.find(handle.value);
  if (found == handles_.end() || found->second.references == 0) return nullptr;
  return &blocks_.at(found->second.block);
}

const PhysicalMemory::Block& PhysicalMemory::Mapped(MemHandle handle) const {
  return blocks_.at(handles_.at(handle.value).block);
}

void PhysicalMemory::DropMapping(MemHandle handle) {
  --handles_.at(handle.value).mappings;
  DropHandleIfUnused(handle.value);
}

void PhysicalMemory::FreeClosed() {
  if (exported_only_.empty()) return;
  shares_.Collect();
  const std::set<BlockId> candidates = exported_only_;
  for (const BlockId id : candidates) DropBlockIfUnused(id);
}

void PhysicalMemory::AddLeaks(int device, SimLeaks* leaks) const {
  for (const auto& [id, block] : blocks_) {
    if (block.device != device) continue;
    ++leaks->memory_blocks;
    leaks->memory_block_bytes += block.bytes;
  }
  for (const auto& [value, handle] : handles_) {
    if (blocks_.at(handle.block).device != device) continue;
    leaks->memory_references += handle.references;
  }
}

MemHandle PhysicalMemory::NewHandle(BlockId block) {
  ++blocks_.at(block).handles;
  handles_.emplace(++last_handle_, Handle{block, 1, 0});
  return MemHandle{last_handle_};
}

void PhysicalMemory::DropHandleIfUnused(std::uint64_t value) {
  const auto found = handles_.find(value);
  if (found->second.references > 0 || found->second.mappings > 0) return;
  const BlockId id = found->second.block;
  handles_.erase(found);
  --blocks_.at(id).handles;
  if (shares_.IsExported(id)) shares_.Collect();
  DropBlockIfUnused(id);
}

void PhysicalMemory::DropBlockIfUnused(BlockId id) {
  const auto found = blocks_.find(id);
  if (found->second.handles > 0) return;
  const Block& block = found->second;
  FrameStore* const store = StoreOf(block);
  if (block.foreign_offset != 0) {
    store->foreign().Remove(block.foreign_offset);
    blocks_.erase(found);
    return;
  }
  if (IsExported(id, block)) {
    exported_only_.insert(id);
    return;
  }
  if (store != nullptr) store->exports().Forget(id);
  devices_[static_cast<std::size_t>(block.device)]->GiveFrames(block.frames);
  exported_only_.erase(id);
  blocks_.erase(found);
}

}  // namespace strata::sim
