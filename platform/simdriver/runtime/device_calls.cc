// The existing devices, the device of a thread, and settings of devices.

#include "strata/platform/simdriver/runtime/calls.h"

namespace strata::simdriver::runtime {
namespace {

// CUDA_SUCCESS if there is such a device.
CUresult CheckDevice(int device) {
  CUdevice found = 0;
  return cuDeviceGet(&found, device);
}

}  // namespace

cudaError_t GetDeviceCount(int* count) {
  if (count != nullptr) *count = 0;
  return WithDriver([&] { return cuDeviceGetCount(count); });
}

cudaError_t GetDevice(int* device) {
  return WithDriver([&] { return Put(device, ThreadDevice()); });
}

cudaError_t SetDevice(int device) {
  return WithDriver([&] {
    const CUresult result = CheckDevice(device);
    return result == CUDA_SUCCESS ? ChooseThreadDevice(device) : result;
  });
}

cudaError_t InitDevice(int device, unsigned, unsigned flags) {
  return WithDriver([&] {
    CUresult result = CheckDevice(device);
    if (result == CUDA_SUCCESS && flags != 0) result = CUDA_ERROR_INVALID_VALUE;
    CUcontext context = nullptr;
    return result == CUDA_SUCCESS ? RetainPrimary(device, &context) : result;
  });
}

// Memory of the device stays, as at the end of a context.
cudaError_t DeviceReset() {
  return WithContext([] {
    const CUresult result = cuCtxSynchronize();
    return result == CUDA_SUCCESS ? ReleasePrimary(ThreadDevice()) : result;
  });
}

// Chooses device 0, because all devices are equal.
cudaError_t ChooseDevice(int* device, const cudaDeviceProp* wanted) {
  return WithDriver([&] {
    return wanted != nullptr ? Put(device, 0) : CUDA_ERROR_INVALID_VALUE;
  });
}

// Hints about caches have no effect: the simulated device has no caches.
cudaError_t DeviceGetCacheConfig(cudaFuncCache* config) {
  return WithContext([&] { return Put(config, cudaFuncCachePreferNone); });
}

cudaError_t DeviceSetCacheConfig(cudaFuncCache) {
  return WithContext([] { return CUDA_SUCCESS; });
}

cudaError_t ResetPersistingL2Cache() {
  return WithContext([] { return CUDA_SUCCESS; });
}

cudaError_t GetDeviceFlags(unsigned* flags) {
  return WithDriver([&] {
    int active = 0;
    return cuDevicePrimaryCtxGetState(ThreadDevice(), flags, &active);
  });
}

cudaError_t SetDeviceFlags(unsigned flags) {
  return WithDriver(
      [&] { return cuDevicePrimaryCtxSetFlags(ThreadDevice(), flags); });
}

cudaError_t DeviceEnablePeerAccess(int peer, unsigned flags) {
  return WithContext([&] {
    CUcontext context = nullptr;
    const CUresult result = RetainPrimary(peer, &context);
    return result == CUDA_SUCCESS ? cuCtxEnablePeerAccess(context, flags)
                                  : result;
  });
}

}  // namespace strata::simdriver::runtime
