#ifndef STRATA_TESTS_PLATFORM_CUDA_FAKE_CUDA_DRIVER_H_
#define STRATA_TESTS_PLATFORM_CUDA_FAKE_CUDA_DRIVER_H_

#include <cuda.h>

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "strata/platform/cuda/cuda_driver.h"

namespace strata::cuda {

// The behaviour and the recorded calls of the functions of
// MakeFakeCudaDriver(). One per process, because the driver's functions take no
// object.
struct FakeCuda {
  // Names of the calls in order, without queries.
  std::vector<std::string> calls;
  // Result of the next call of each name.
  std::map<std::string, CUresult> results;
  CUcontext current = nullptr;          // of every thread
  CUcontext current_in_call = nullptr;  // at the last allocation
  int pushes = 0;
  int pops = 0;
  int contexts_made = 0;
  int devices = 2;
  bool has_pools = true;
  bool has_virtual_memory = true;
  DriverNumber next_stream_id = 0;
  CUcontext stream_context = nullptr;  // reported context of streams
  unsigned stream_flags = 0;           // reported flags of streams
  CUstream last_stream = nullptr;      // stream of the last work
  unsigned last_blocks = 0;            // of a launch
  std::vector<CUlaunchAttribute>
      launch_attributes;    // of the last LaunchKernelEx
  std::string module_text;  // of the last load
  int compute_major = 9;
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  CUstreamCaptureMode capture_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;
  CUstreamCaptureMode mode_of_load = CU_STREAM_CAPTURE_MODE_GLOBAL;
};

inline FakeCuda& Fake() {
  static FakeCuda fake;
  return fake;
}

inline CUresult FakeCall(const std::string& name) {
  Fake().calls.push_back(name);
  const auto found = Fake().results.find(name);
  if (found == Fake().results.end()) return CUDA_SUCCESS;
  const CUresult result = found->second;
  Fake().results.erase(found);
  return result;
}

// The primary context of a device.
inline CUcontext FakeContext(int device) {
  return reinterpret_cast<CUcontext>(std::uintptr_t{0x1000} +
                                     static_cast<std::uintptr_t>(device));
}

template <class Handle>
Handle FakeHandle(std::uintptr_t number) {
  return reinterpret_cast<Handle>(number);
}

// The devices and their contexts.
inline void AddFakeDevices(CudaDriver* driver) {
  driver->DeviceGetCount = [](int* count) {
    *count = Fake().devices;
    return FakeCall("DeviceGetCount");
  };
  driver->DeviceGet = [](CUdevice* device, int ordinal) {
    *device = ordinal;
    return CUDA_SUCCESS;
  };
  driver->DeviceGetAttribute = [](int* value, CUdevice_attribute attribute,
                                  CUdevice) {
    *value = 1;
    if (attribute == CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED) {
      *value = Fake().has_pools ? 1 : 0;
    }
    if (attribute == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR) {
      *value = Fake().compute_major;
    }
    if (attribute == CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED) {
      *value = Fake().has_virtual_memory ? 1 : 0;
    }
    return CUDA_SUCCESS;
  };
  driver->DevicePrimaryCtxRetain = [](CUcontext* context, CUdevice device) {
    *context = FakeContext(device);
    ++Fake().contexts_made;
    return FakeCall("DevicePrimaryCtxRetain");
  };
  driver->DevicePrimaryCtxRelease = [](CUdevice) {
    return FakeCall("DevicePrimaryCtxRelease");
  };
  driver->CtxGetCurrent = [](CUcontext* context) {
    *context = Fake().current;
    return CUDA_SUCCESS;
  };
  // One level is enough for CudaContextScope.
  static CUcontext below = nullptr;
  driver->CtxPushCurrent = [](CUcontext context) {
    below = std::exchange(Fake().current, context);
    ++Fake().pushes;
    return CUDA_SUCCESS;
  };
  driver->CtxPopCurrent = [](CUcontext* context) {
    *context = std::exchange(Fake().current, below);
    ++Fake().pops;
    return CUDA_SUCCESS;
  };
  driver->CtxEnablePeerAccess = [](CUcontext context, unsigned) {
    return FakeCall(context == FakeContext(1) ? "EnablePeer1" : "EnablePeer?");
  };
}

inline void AddFakeStreams(CudaDriver* driver) {
  driver->StreamCreate = [](CUstream* stream, unsigned) {
    *stream = FakeHandle<CUstream>(0x5000);
    return FakeCall("StreamCreate");
  };
  driver->StreamDestroy = [](CUstream) { return FakeCall("StreamDestroy"); };
  driver->StreamGetId = [](CUstream, DriverNumber* id) {
    *id = Fake().next_stream_id++;
    return FakeCall("StreamGetId");
  };
  driver->StreamGetFlags = [](CUstream, unsigned* flags) {
    *flags = Fake().stream_flags;
    return FakeCall("StreamGetFlags");
  };
  driver->StreamGetCtx = [](CUstream, CUcontext* context) {
    *context = Fake().stream_context;
    return CUDA_SUCCESS;
  };
  driver->StreamSynchronize = [](CUstream stream) {
    Fake().last_stream = stream;
    return FakeCall("StreamSynchronize");
  };
  driver->StreamQuery = [](CUstream stream) {
    Fake().last_stream = stream;
    return FakeCall("StreamQuery");
  };
  driver->EventCreate = [](CUevent* event, unsigned) {
    *event = FakeHandle<CUevent>(0x6000);
    return FakeCall("EventCreate");
  };
  driver->EventQuery = [](CUevent) { return FakeCall("EventQuery"); };
  driver->StreamGetCaptureInfo =
      [](CUstream, CUstreamCaptureStatus* status, cuuint64_t* id,
         CUgraph* graph, const CUgraphNode** nodes, const CUgraphEdgeData**,
         std::size_t* count) {
        static CUgraphNode node = FakeHandle<CUgraphNode>(0x8000);
        *status = Fake().capture;
        *id = 7;
        *graph = FakeHandle<CUgraph>(0x7000);
        *nodes = &node;
        *count = 1;
        return FakeCall("StreamGetCaptureInfo");
      };
}

inline void AddFakeMemory(CudaDriver* driver) {
  driver->MemAlloc = [](CUdeviceptr* ptr, std::size_t) {
    *ptr = 0x100000;
    Fake().current_in_call = Fake().current;
    return FakeCall("MemAlloc");
  };
  driver->MemFree = [](CUdeviceptr) { return FakeCall("MemFree"); };
  driver->MemcpyAsync = [](CUdeviceptr, CUdeviceptr, std::size_t, CUstream) {
    return FakeCall("MemcpyAsync");
  };
  driver->PointerGetAttributes = [](unsigned, CUpointer_attribute*, void** data,
                                    CUdeviceptr ptr) {
    *static_cast<unsigned*>(data[0]) = ptr == 0 ? 0 : CU_MEMORYTYPE_DEVICE;
    *static_cast<int*>(data[1]) = ptr == 0 ? -2 : 1;
    return FakeCall("PointerGetAttributes");
  };
  driver->MemGetAllocationGranularity = [](std::size_t* bytes,
                                           const CUmemAllocationProp*,
                                           CUmemAllocationGranularity_flags) {
    *bytes = std::size_t{2} << 20;
    return CUDA_SUCCESS;
  };
  driver->MemPoolGetAttribute = [](CUmemoryPool, CUmemPool_attribute attribute,
                                   void* value) {
    if (attribute <= CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES) {
      *static_cast<int*>(value) = 1;
    } else {
      *static_cast<cuuint64_t*>(value) = cuuint64_t{1} << 40;
    }
    return FakeCall("MemPoolGetAttribute");
  };
  driver->MemExport = [](void* handle, CUmemGenericAllocationHandle,
                         CUmemAllocationHandleType type, DriverNumber) {
    if (type == CU_MEM_HANDLE_TYPE_FABRIC) {
      static_cast<unsigned char*>(handle)[63] = 9;
    } else {
      *static_cast<int*>(handle) = 12;
    }
    return FakeCall("MemExport");
  };
  driver->MemImport = [](CUmemGenericAllocationHandle* handle, void* os_handle,
                         CUmemAllocationHandleType type) {
    *handle = type == CU_MEM_HANDLE_TYPE_FABRIC
                  ? static_cast<unsigned char*>(os_handle)[63]
                  : reinterpret_cast<std::uintptr_t>(os_handle);
    return FakeCall("MemImport");
  };
}

inline void AddFakeKernel(CudaDriver* driver) {
  // Shared by all threads.
  driver->ThreadExchangeStreamCaptureMode = [](CUstreamCaptureMode* mode) {
    std::swap(*mode, Fake().capture_mode);
    return CUDA_SUCCESS;
  };
  driver->ModuleLoadData = [](CUmodule* module, const void* image) {
    Fake().module_text = static_cast<const char*>(image);
    *module = FakeHandle<CUmodule>(0x9000);
    Fake().mode_of_load = Fake().capture_mode;
    return FakeCall("ModuleLoadData");
  };
  driver->ModuleUnload = [](CUmodule) { return FakeCall("ModuleUnload"); };
  driver->ModuleGetFunction = [](CUfunction* function, CUmodule, const char*) {
    *function = FakeHandle<CUfunction>(0xa000);
    return FakeCall("ModuleGetFunction");
  };
  driver->LaunchKernel = [](CUfunction, unsigned blocks, unsigned, unsigned,
                            unsigned, unsigned, unsigned, unsigned,
                            CUstream stream, void**, void**) {
    Fake().last_stream = stream;
    Fake().last_blocks = blocks;
    return FakeCall("LaunchKernel");
  };
  driver->LaunchKernelEx = [](const CUlaunchConfig* config, CUfunction, void**,
                              void**) {
    Fake().last_stream = config->hStream;
    Fake().last_blocks = config->gridDimX;
    Fake().launch_attributes.assign(config->attrs,
                                    config->attrs + config->numAttrs);
    return FakeCall("LaunchKernelEx");
  };
}

// A driver of two fake devices. Functions that no test needs are null.
inline CudaDriver MakeFakeCudaDriver() {
  Fake() = FakeCuda();
  CudaDriver driver;
  AddFakeDevices(&driver);
  AddFakeStreams(&driver);
  AddFakeMemory(&driver);
  AddFakeKernel(&driver);
  return driver;
}

}  // namespace strata::cuda

#endif  // STRATA_TESTS_PLATFORM_CUDA_FAKE_CUDA_DRIVER_H_
