// Stream-ordered pools of the simulated device.

#include "strata/platform/sim/device/sim_device.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/platform/sim/pools/pool_table.h"
#include "strata/platform/sim/pools/stream_pool.h"

namespace strata::sim {
Status SimDevice::DoDefaultMemPool(Call* seen, MemPool* pool) {
  if (pool == nullptr) return Status::kInvalidValue;
  std::lock_guard lock(mutex_);
  *pool = pools_.default_pool();
  seen->ptr = NumberOf(*pool);
  return Status::kSuccess;
}

Status SimDevice::DoPoolCreate(Call* seen, MemPool* pool,
                               const MemProperties& properties,
                               std::size_t max_bytes) {
  const Location& location = properties.location;
  if (pool == nullptr || location.kind != Location::Kind::kDevice ||
      location.id < 0 || location.id >= platform_->device_count()) {
    return Status::kInvalidValue;
  }
  switch (properties.share) {
    case ShareType::kNone:
    case ShareType::kPosixFd:
      break;
    case ShareType::kFabric:  // no channel to other nodes: V11, D7
      return Status::kNotPermitted;
    default:
      return Status::kInvalidValue;
  }
  std::lock_guard lock(mutex_);
  PoolTable& pools = platform_->sim_device(location.id).pools_;
  *pool = pools.Create(max_bytes, properties.share);
  seen->ptr = NumberOf(*pool);
  return Status::kSuccess;
}

Status SimDevice::DoPoolDestroy(Call*, MemPool pool) {
  std::lock_guard lock(mutex_);
  SimDevice* owner = platform_->OwnerOf(pool);
  if (owner == nullptr) return Status::kInvalidValue;
  return owner->pools_.Destroy(pool, scheduler_);
}

Status SimDevice::DoPoolTrimTo(Call*, MemPool pool, std::size_t keep_bytes) {
  std::lock_guard lock(mutex_);
  StreamPool* found = FindPool(pool);
  if (found == nullptr) return Status::kInvalidValue;
  found->TrimTo(keep_bytes, scheduler_);
  return Status::kSuccess;
}

Status SimDevice::DoPoolSetAttribute(Call*, MemPool pool,
                                     PoolAttribute attribute,
                                     std::uint64_t value) {
  std::lock_guard lock(mutex_);
  StreamPool* found = FindPool(pool);
  return found == nullptr ? Status::kInvalidValue
                          : found->SetAttribute(attribute, value);
}

Status SimDevice::DoPoolGetAttribute(Call*, MemPool pool,
                                     PoolAttribute attribute,
                                     std::uint64_t* value) {
  std::lock_guard lock(mutex_);
  const StreamPool* found = FindPool(pool);
  if (found == nullptr || value == nullptr) return Status::kInvalidValue;
  return found->GetAttribute(attribute, value);
}

Status SimDevice::DoPoolSetAccess(Call*, MemPool pool,
                                  const AccessDescriptor* access,
                                  std::size_t count) {
  std::lock_guard lock(mutex_);
  StreamPool* found = FindPool(pool);
  if (found == nullptr || (access == nullptr && count != 0)) {
    return Status::kInvalidValue;
  }
  const auto devices = static_cast<std::size_t>(platform_->device_count());
  if (count > devices) return Status::kNotSupported;
  for (std::size_t i = 0; i < count; ++i) {
    const Status status = CheckPoolAccess(*found, access[i]);
    if (status != Status::kSuccess) return status;
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (access[i].location.id == found->device()) continue;
    found->SetAccess(access[i].location.id, access[i].access);
  }
  return Status::kSuccess;
}

// The status for the owner's rights was seen on an H200, driver 580.159. The
// others are those that AMD's tests expect of NVIDIA's runtime.
Status SimDevice::CheckPoolAccess(const StreamPool& pool,
                                  const AccessDescriptor& access) const {
  if (access.location.kind != Location::Kind::kDevice) {
    return Status::kNotSupported;
  }
  const int device = access.location.id;
  if (device < 0 || device >= platform_->device_count()) {
    return Status::kInvalidDevice;
  }
  if (!IsKnown(access.access)) return Status::kInvalidValue;
  const bool revokes =
      device == pool.device() && access.access != Access::kReadWrite;
  return revokes ? Status::kInvalidDevice : Status::kSuccess;
}

void SimDevice::SubmitMark(const Stream& stream, PoolTable* pools,
                           DevicePtr ptr, bool fresh, SimLock* lock) {
  if (const std::uint64_t number = pools->AddMark(ptr, fresh)) {
    scheduler_.Submit(
        stream, 0, [pools, number] { pools->RunMark(number); }, lock);
  } else {
    scheduler_.Submit(
        stream, 0, [] {}, lock);
  }
}

Status SimDevice::DoMallocFromPoolAsync(Call* seen, DevicePtr* ptr,
                                        std::size_t bytes, MemPool pool,
                                        Stream stream) {
  // Memory that is already reserved costs no frames.
  seen->charged_bytes = 0;
  if (ptr == nullptr) return Status::kInvalidValue;
  SimLock lock(mutex_);
  if (!AcceptsAnyStream(stream)) return Status::kInvalidResourceHandle;
  SimDevice* owner = platform_->OwnerOf(pool);
  if (owner == nullptr || !owner->pools_.Owns(pool)) {
    return Status::kInvalidValue;
  }
  if (bytes == 0) {
    *ptr = 0;
    return Status::kSuccess;
  }
  StreamPool* found = owner->pools_.Find(pool);
  if (SimCapture* capture = CaptureOf(stream)) {
    return CaptureAlloc(capture, stream, bytes, *found, ptr, seen);
  }
  const std::uint64_t reserved = found->reserved_bytes();
  const Status status =
      owner->pools_.Allocate(found, bytes, stream, &scheduler_, ptr);
  if (status != Status::kSuccess) return status;
  SubmitMark(stream, &owner->pools_, *ptr, true, &lock);
  if (found->reserved_bytes() > reserved) {
    seen->charged_bytes = found->reserved_bytes() - reserved;
  }
  seen->ptr = *ptr;
  return status;
}

Status SimDevice::DoFreeAsync(Call* seen, DevicePtr ptr, Stream stream) {
  SimLock lock(mutex_);
  if (!AcceptsAnyStream(stream)) return Status::kInvalidResourceHandle;
  if (ptr == 0) return Status::kSuccess;  // in a capture too
  if (SimCapture* capture = CaptureOf(stream)) {
    return CaptureFree(capture, stream, ptr, seen);
  }
  SimDevice* owner = platform_->OwnerOf(ptr);
  if (owner == nullptr) return Status::kInvalidValue;
  if (DeviceOfGraphAddress(ptr) >= 0) {
    return FreeGraphMemory(ptr, stream, &lock);
  }
  if (DeviceOfPoolAddress(ptr) >= 0) {
    if (owner->pools_.BlockBytes(ptr) == 0) return Status::kInvalidValue;
    SubmitMark(stream, &owner->pools_, ptr, false, &lock);
    return owner->pools_.Free(ptr, scheduler_.Last(stream), scheduler_)
               ? Status::kSuccess
               : Status::kInvalidValue;
  }
  // Memory of MemAlloc is accepted too, after a wait: P2.
  if (!owner->memory_.Covers(ptr, 1)) return Status::kInvalidValue;
  scheduler_.AwaitStream(stream, &lock);
  return owner->memory_.Free(ptr);
}

Status SimDevice::DoPoolExport(Call*, MemPool pool, ShareType type,
                               Shareable* shareable) {
  if (shareable == nullptr || type != ShareType::kPosixFd) {
    return Status::kInvalidValue;
  }
  std::lock_guard lock(mutex_);
  SimDevice* owner = platform_->OwnerOf(pool);
  if (owner == nullptr || !owner->pools_.Owns(pool) ||
      owner->pools_.Find(pool)->share() != type) {
    return Status::kInvalidValue;
  }
  const int fd = platform_->shared_pools().Export(NumberOf(pool));
  if (fd < 0) return Status::kUnknown;  // no descriptor left
  shareable->fd = fd;
  return Status::kSuccess;
}

Status SimDevice::DoPoolImport(Call* seen, MemPool* pool, ShareType type,
                               const Shareable& shareable) {
  if (pool == nullptr || type != ShareType::kPosixFd) {
    return Status::kInvalidValue;
  }
  std::lock_guard lock(mutex_);
  const auto object = platform_->shared_pools().Find(shareable.fd);
  if (!object) return Status::kInvalidValue;
  const MemPool exported{reinterpret_cast<void*>(*object)};
  SimDevice* owner = platform_->OwnerOf(exported);
  if (owner == nullptr || !owner->pools_.Owns(exported)) {
    return Status::kInvalidValue;
  }
  *pool = owner->pools_.Import(exported);
  seen->ptr = NumberOf(*pool);
  return Status::kSuccess;
}

StreamPool* SimDevice::FindPool(MemPool pool) const {
  SimDevice* owner = platform_->OwnerOf(pool);
  return owner == nullptr ? nullptr : owner->pools_.Find(pool);
}

bool SimDevice::AcceptsAnyStream(const Stream& stream) const {
  return stream.device >= 0 && stream.device < platform_->device_count() &&
         platform_->sim_device(stream.device).streams_.Accepts(stream);
}

}  // namespace strata::sim
