#include "strata/platform/cuda/cuda_device.h"

#include <atomic>
#include <cstdio>
#include <cstdlib>

#include "strata/platform/cuda/cuda_platform.h"
#include "strata/platform/cuda/cuda_types.h"
#include "strata/platform/locks/spin_lock.h"

namespace strata::cuda {
namespace {

std::uint64_t NewCudaInstance() {
  static std::atomic<std::uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

// Returns 0 if the driver does not report it.
std::size_t MapGranularity(const CudaDriver& driver, CUdevice device) {
  MemProperties properties;
  properties.location.id = device;
  const CUmemAllocationProp prop = ToCuda(properties);
  std::size_t bytes = 0;
  const CUresult result = driver.MemGetAllocationGranularity(
      &bytes, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  return result == CUDA_SUCCESS ? bytes : 0;
}

}  // namespace

CudaDevice::CudaDevice(CudaPlatform* platform, int ordinal, CUdevice device)
    : platform_(platform),
      driver_(platform->driver()),
      ordinal_(ordinal),
      device_(device),
      instance_(NewCudaInstance()),
      caps_(ReadCaps()),
      context_(driver_, device) {}

int CudaDevice::ValueOf(CUdevice_attribute attribute) const {
  int value = 0;
  const CUresult result =
      driver_.DeviceGetAttribute(&value, attribute, device_);
  return result == CUDA_SUCCESS ? value : 0;
}

Caps CudaDevice::ReadCaps() const {
  Caps caps;
  caps.mem_pools = Has(CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED);
  caps.virtual_memory =
      Has(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED);
  caps.share_fd =
      Has(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED);
  caps.share_fabric = Has(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED);
  caps.rdma = Has(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED);
  caps.managed_memory = Has(CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY);
  caps.pinned_memory = true;
  caps.capture = true;
  caps.graphs = true;
  // Memory nodes allocate as the pools do.
  caps.graph_mem_nodes = caps.mem_pools;
  caps.user_objects = true;
  caps.peer_access = true;
  caps.compute_major = ValueOf(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  caps.compute_minor = ValueOf(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  if (caps.virtual_memory) {
    caps.map_granularity_bytes = MapGranularity(driver_, device_);
  }
  SimDriverInfo info;
  if (driver_.simulated != nullptr && driver_.simulated(&info) == 0) {
    caps.simulated = true;
    caps.phantom_memory = info.phantom_memory != 0;
  }
  return caps;
}

void CudaDevice::Enter(DeviceCall call) {
  if (HeldLocks() != 0) {
    std::fprintf(stderr,
                 "strata cuda: %s called with %d lock(s) of Strata held\n",
                 DeviceCallName(call), HeldLocks());
    std::abort();
  }
  CountCall(call);
}

bool CudaDevice::Supports(DeviceCall call) const {
  // device_calls.def lists the calls of pools, and those of virtual memory,
  // together.
  if (call >= DeviceCall::kDefaultMemPool && call <= DeviceCall::kPoolImport) {
    return caps_.mem_pools;
  }
  if (call >= DeviceCall::kGranularity && call <= DeviceCall::kRetainMemory) {
    return caps_.virtual_memory;
  }
  switch (call) {
    case DeviceCall::kMallocManaged:
      return caps_.managed_memory;
    case DeviceCall::kStreamBeginCaptureToGraph:
      return driver_.StreamBeginCaptureToGraph != nullptr;
    case DeviceCall::kStreamCaptureInfo:
      return driver_.StreamGetCaptureInfo != nullptr;
    case DeviceCall::kGraphNodePredecessors:
      return driver_.GraphNodeGetDependencies != nullptr;
    default:
      return true;
  }
}

// The observers run after the current device of the caller is restored.
template <class Effect>
Status CudaDevice::Run(DeviceCall name, Call call, const Stream* stream,
                       Effect effect) {
  call.call = name;
  if (stream != nullptr) call.stream_uid = stream->uid;
  Enter(name);
  {
    CudaContextScope scope(context_);
    call.status = scope.status();
    if (call.status == Status::kSuccess && stream != nullptr) {
      call.status = CheckStream(*stream);
    }
    if (call.status == Status::kSuccess) call.status = effect(&call);
  }
  Observe(call);
  return call.status;
}

#define STRATA_DEVICE_CALL(method, name, parameters, arguments, operands) \
  STRATA_ENTRY_POINT(                                                     \
      CudaDevice, method, parameters, arguments, operands,                \
      if (!Supports(DeviceCall::k##method)) return Status::kNotSupported)
#define STRATA_DEVICE_NODES_CALL(method, name, parameters, arguments,     \
                                 operands)                                \
  STRATA_ENTRY_POINT(                                                     \
      CudaDevice, method, parameters, arguments, operands,                \
      if (!Supports(DeviceCall::k##method)) return Status::kNotSupported; \
      NoteDependencies(dependencies, count))
#include "strata/platform/calls/device_calls.def"
#undef STRATA_DEVICE_CALL

Status CudaDevice::DoMemGetInfo(Call*, std::size_t* free_bytes,
                                std::size_t* total_bytes) {
  if (free_bytes == nullptr || total_bytes == nullptr) {
    return Status::kInvalidValue;
  }
  std::size_t free_now = 0;
  std::size_t total = 0;
  const CUresult result = driver_.MemGetInfo(&free_now, &total);
  if (result != CUDA_SUCCESS) return ToStatus(result);
  *free_bytes = free_now;
  *total_bytes = total;
  return Status::kSuccess;
}

Status CudaDevice::DoSynchronize(Call*) {
  return ToStatus(driver_.CtxSynchronize());
}

Status CudaDevice::DoEnablePeerAccess(Call*, int peer) {
  if (peer < 0 || peer >= platform_->device_count() || peer == ordinal_) {
    return Status::kInvalidDevice;
  }
  CUcontext context = nullptr;
  const Status status = platform_->cuda_device(peer).context_.Get(&context);
  if (status != Status::kSuccess) return status;
  return ToStatus(driver_.CtxEnablePeerAccess(context, 0));
}

Status CudaDevice::DoCanAccessPeer(Call*, int peer, bool* can) {
  if (can == nullptr) return Status::kInvalidValue;
  if (peer < 0 || peer >= platform_->device_count()) {
    return Status::kInvalidDevice;
  }
  int answer = 0;
  const CUresult result = driver_.DeviceCanAccessPeer(
      &answer, device_, platform_->cuda_device(peer).device_);
  if (result != CUDA_SUCCESS) return ToStatus(result);
  *can = answer != 0;
  return Status::kSuccess;
}

}  // namespace strata::cuda
