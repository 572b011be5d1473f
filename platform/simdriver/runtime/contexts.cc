// The primary contexts that the runtime makes, and the device of a thread.

#include <map>
#include <mutex>

#include "strata/platform/simdriver/runtime/calls.h"

namespace strata::simdriver::runtime {
namespace {

thread_local constinit int t_device = 0;

// The primary contexts that the runtime retains, by device.
struct Retained {
  std::mutex mutex;
  std::map<int, CUcontext> contexts;  // guarded by mutex
};

Retained& RetainedContexts() {
  static auto* const retained = new Retained();
  return *retained;
}

}  // namespace

int ThreadDevice() {
  CUdevice device = 0;
  return cuCtxGetDevice(&device) == CUDA_SUCCESS ? device : t_device;
}

CUresult RetainPrimary(int device, CUcontext* context) {
  Retained& retained = RetainedContexts();
  std::lock_guard lock(retained.mutex);
  const auto found = retained.contexts.find(device);
  if (found != retained.contexts.end()) {
    *context = found->second;
    return CUDA_SUCCESS;
  }
  const CUresult result = cuDevicePrimaryCtxRetain(context, device);
  if (result == CUDA_SUCCESS) retained.contexts.emplace(device, *context);
  return result;
}

CUresult ReleasePrimary(int device) {
  Retained& retained = RetainedContexts();
  std::lock_guard lock(retained.mutex);
  return retained.contexts.erase(device) == 1
             ? cuDevicePrimaryCtxRelease(device)
             : CUDA_SUCCESS;
}

CUresult ChooseThreadDevice(int device) {
  CUcontext context = nullptr;
  CUresult result = RetainPrimary(device, &context);
  if (result == CUDA_SUCCESS) result = cuCtxSetCurrent(context);
  if (result == CUDA_SUCCESS) t_device = device;
  return result;
}

CUresult StartDriver() { return cuInit(0); }

CUresult NeedContext() {
  CUdevice device = 0;
  CUresult result = cuCtxGetDevice(&device);
  if (result == CUDA_SUCCESS) return result;
  result = StartDriver();
  return result == CUDA_SUCCESS ? ChooseThreadDevice(t_device) : result;
}

}  // namespace strata::simdriver::runtime
