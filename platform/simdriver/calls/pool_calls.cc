// Stream-ordered pools.

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "strata/platform/simdriver/context.h"
#include "strata/platform/simdriver/types.h"

namespace strata::simdriver {
namespace {

// The reuse policies are ints; all other attributes have 64 bits.
bool IsPolicy(CUmemPool_attribute attribute) {
  return attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES;
}

Status Allocate(SimDevice& device, CUdeviceptr* ptr, std::size_t bytes,
                MemPool pool, const Stream& stream) {
  if (!pool) return Status::kInvalidValue;
  return PutMade(ptr, device, &SimDevice::MallocFromPoolAsync, bytes, pool,
                 stream);
}

std::atomic<CUmemoryPool>& CurrentPool(int ordinal) {
  return FindProcess()->current_pools[static_cast<std::size_t>(ordinal)];
}

// Makes the default pool current on each device with `pool` as its current
// pool.
void LeavePool(CUmemoryPool pool) {
  for (auto& current : FindProcess()->current_pools) {
    CUmemoryPool expected = pool;
    current.compare_exchange_strong(expected, nullptr);
  }
}

// The pool of allocations that name none.
Status FindCurrentPool(SimDevice& device, MemPool* pool) {
  CUmemoryPool current = CurrentPool(device.ordinal()).load();
  if (current == nullptr) return device.DefaultMemPool(pool);
  *pool = MemPool{current};
  return Status::kSuccess;
}

}  // namespace

CUresult DeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice ordinal) {
  return OfDevice(ordinal, pool, [&](SimDevice& device) {
    return ToResult(PutMade(pool, device, &SimDevice::DefaultMemPool));
  });
}

CUresult DeviceGetMemPool(CUmemoryPool* pool, CUdevice ordinal) {
  return OfDevice(ordinal, pool, [&](SimDevice&) {
    *pool = CurrentPool(ordinal).load();
    return *pool != nullptr ? CUDA_SUCCESS
                            : DeviceGetDefaultMemPool(pool, ordinal);
  });
}

CUresult DeviceSetMemPool(CUdevice ordinal, CUmemoryPool pool) {
  const CUresult result = CheckOrdinal(ordinal);
  if (result != CUDA_SUCCESS) return result;
  SimPlatform& platform = FindProcess()->platform;
  SimDevice& device = platform.sim_device(ordinal);
  if (platform.OwnerOf(MemPool{pool}) != &device) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  // Fails if the pool was destroyed.
  std::uint64_t reserved = 0;
  const Status status = device.PoolGetAttribute(
      MemPool{pool}, PoolAttribute::kReservedCurrent, &reserved);
  if (status == Status::kSuccess) CurrentPool(ordinal).store(pool);
  return ToResult(status);
}

CUresult MemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* props) {
  return OnCurrentDevice([&](SimDevice& device) {
    MemProperties properties;
    if (props == nullptr || !ToStrata(*props, &properties)) {
      return Status::kInvalidValue;
    }
    return PutMade(pool, device, &SimDevice::PoolCreate, properties,
                   props->maxSize);
  });
}

CUresult MemPoolDestroy(CUmemoryPool pool) {
  return OnCurrentDevice([&](SimDevice& device) {
    const Status status = device.PoolDestroy({pool});
    if (status == Status::kSuccess) LeavePool(pool);
    return status;
  });
}

CUresult MemPoolTrimTo(CUmemoryPool pool, std::size_t keep_bytes) {
  return OnCurrentDevice(&SimDevice::PoolTrimTo, MemPool{pool}, keep_bytes);
}

CUresult MemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                             void* value) {
  return OnCurrentDevice([&](SimDevice& device) {
    if (value == nullptr) return Status::kInvalidValue;
    const std::uint64_t number =
        IsPolicy(attribute)
            ? static_cast<std::uint64_t>(*static_cast<const int*>(value) != 0)
            : *static_cast<const cuuint64_t*>(value);
    return device.PoolSetAttribute(
        {pool}, static_cast<PoolAttribute>(attribute), number);
  });
}

CUresult MemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                             void* value) {
  return OnCurrentDevice([&](SimDevice& device) {
    if (value == nullptr) return Status::kInvalidValue;
    std::uint64_t number = 0;
    const Status status = device.PoolGetAttribute(
        {pool}, static_cast<PoolAttribute>(attribute), &number);
    if (status != Status::kSuccess) return status;
    if (IsPolicy(attribute)) {
      *static_cast<int*>(value) = static_cast<int>(number);
    } else {
      *static_cast<cuuint64_t*>(value) = number;
    }
    return status;
  });
}

CUresult MemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* access,
                          std::size_t count) {
  return OnCurrentDevice([&](SimDevice& device) {
    if (access == nullptr && count != 0) return Status::kInvalidValue;
    return device.PoolSetAccess({pool}, ToStrata(access, count).data(), count);
  });
}

CUresult MemAllocAsync(NullStream null, CUdeviceptr* ptr, std::size_t bytes,
                       CUstream handle) {
  return OnStream(null, handle, [&](SimDevice& device, const Stream& stream) {
    MemPool pool;
    const Status status = FindCurrentPool(device, &pool);
    if (status != Status::kSuccess) return status;
    return Allocate(device, ptr, bytes, pool, stream);
  });
}

CUresult MemAllocFromPoolAsync(NullStream null, CUdeviceptr* ptr,
                               std::size_t bytes, CUmemoryPool pool,
                               CUstream handle) {
  return OnStream(null, handle, [&](SimDevice& device, const Stream& stream) {
    return Allocate(device, ptr, bytes, MemPool{pool}, stream);
  });
}

CUresult MemFreeAsync(NullStream null, CUdeviceptr ptr, CUstream handle) {
  return OnStream(null, handle, [&](SimDevice& device, const Stream& stream) {
    return device.FreeAsync(ptr, stream);
  });
}

CUresult MemPoolExport(void* out, CUmemoryPool pool,
                       CUmemAllocationHandleType type,
                       unsigned long long flags) {  // NOLINT
  return OnCurrentDevice([&](SimDevice& device) {
    ShareType share = ShareType::kNone;
    if (out == nullptr || flags != 0 || !ToStrata(type, &share)) {
      return Status::kInvalidValue;
    }
    Shareable shareable;
    const Status status = device.PoolExport({pool}, share, &shareable);
    if (status == Status::kSuccess) PutShareable(share, shareable, out);
    return status;
  });
}

CUresult MemPoolImport(CUmemoryPool* pool, void* handle,
                       CUmemAllocationHandleType type,
                       unsigned long long flags) {  // NOLINT
  return OnCurrentDevice([&](SimDevice& device) {
    ShareType share = ShareType::kNone;
    if (pool == nullptr || flags != 0 || !ToStrata(type, &share) ||
        (share == ShareType::kFabric && handle == nullptr)) {
      return Status::kInvalidValue;
    }
    return PutMade(pool, device, &SimDevice::PoolImport, share,
                   ToShareable(share, handle));
  });
}

}  // namespace strata::simdriver
