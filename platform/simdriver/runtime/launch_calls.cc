// Launches of kernels, and their attributes.

#include "strata/platform/simdriver/runtime/calls.h"
#include "strata/platform/simdriver/runtime/program_images.h"

namespace strata::simdriver::runtime {
namespace {

// Runs `body(CUfunction)`, which returns a CUresult or a cudaError_t, with the
// kernel of `stub`: a function of the program, or a result of GetKernel.
// cudaErrorInvalidDeviceFunction if there is no such kernel.
template <class Body>
cudaError_t WithKernel(const void* stub, Body body) {
  return WithContext([&] {
    CUfunction function = nullptr;
    const CUresult result = Images().FindKernel(stub, &function);
    if (result == CUDA_ERROR_NOT_FOUND) return cudaErrorInvalidDeviceFunction;
    return result == CUDA_SUCCESS ? ToError(body(function)) : ToError(result);
  });
}

bool IsEmpty(dim3 extents) {
  return extents.x == 0 || extents.y == 0 || extents.z == 0;
}

// The most threads of a block, as every device has.
constexpr unsigned long long kMaxThreads = 1024;  // NOLINT

cudaError_t Launch(CUfunction function, dim3 grid, dim3 block, void** arguments,
                   std::size_t shared_bytes, cudaStream_t stream) {
  if (IsEmpty(grid) || IsEmpty(block) ||
      1ull * block.x * block.y * block.z > kMaxThreads) {
    return cudaErrorInvalidConfiguration;
  }
  return ToError(cuLaunchKernel(
      function, grid.x, grid.y, grid.z, block.x, block.y, block.z,
      static_cast<unsigned>(shared_bytes), stream, arguments, nullptr));
}

// Reads attributes of a function while all calls succeed.
class AttributeReader {
 public:
  explicit AttributeReader(CUfunction function) : function_(function) {}

  template <class Field>
  void Read(Field* field, CUfunction_attribute attribute) {
    int value = 0;
    if (result_ == CUDA_SUCCESS) {
      result_ = cuFuncGetAttribute(&value, attribute, function_);
    }
    *field = static_cast<Field>(value);
  }
  CUresult result() const { return result_; }

 private:
  CUfunction function_;
  CUresult result_ = CUDA_SUCCESS;
};

}  // namespace

// A handle of a kernel is a function of the driver.
cudaError_t GetKernel(cudaKernel_t* kernel, const void* stub) {
  return WithKernel(stub, [&](CUfunction function) {
    return Put(kernel, reinterpret_cast<cudaKernel_t>(function));
  });
}

cudaError_t GetKernelOfEntry(cudaKernel_t* kernel, const void* stub) {
  return GetKernel(kernel, stub);
}

cudaError_t GetFuncBySymbol(cudaFunction_t* result, const void* stub) {
  return WithKernel(stub,
                    [&](CUfunction function) { return Put(result, function); });
}

cudaError_t LaunchKernel(NullStream null, const void* stub, dim3 grid,
                         dim3 block, void** arguments, std::size_t shared_bytes,
                         cudaStream_t stream) {
  return WithKernel(stub, [&](CUfunction function) {
    return Launch(function, grid, block, arguments, shared_bytes,
                  StreamOf(null, stream));
  });
}

cudaError_t LaunchKernelHandle(NullStream null, cudaKernel_t kernel, dim3 grid,
                               dim3 block, void** arguments,
                               std::size_t shared_bytes, cudaStream_t stream) {
  return LaunchKernel(null, kernel, grid, block, arguments, shared_bytes,
                      stream);
}

cudaError_t LaunchKernelEx(NullStream null, const cudaLaunchConfig_t* config,
                           const void* stub, void** arguments) {
  if (config == nullptr) return Note(cudaErrorInvalidValue);
  return WithKernel(stub, [&](CUfunction function) {
    return Launch(function, config->gridDim, config->blockDim, arguments,
                  config->dynamicSmemBytes, StreamOf(null, config->stream));
  });
}

cudaError_t LaunchCooperativeKernel(NullStream null, const void* stub,
                                    dim3 grid, dim3 block, void** arguments,
                                    std::size_t shared_bytes,
                                    cudaStream_t stream) {
  return LaunchKernel(null, stub, grid, block, arguments, shared_bytes, stream);
}

cudaError_t FuncGetAttributes(cudaFuncAttributes* attributes,
                              const void* stub) {
  return WithKernel(stub, [&](CUfunction function) {
    if (attributes == nullptr) return CUDA_ERROR_INVALID_VALUE;
    cudaFuncAttributes found = {};
    AttributeReader reader(function);
    reader.Read(&found.maxThreadsPerBlock,
                CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
    reader.Read(&found.sharedSizeBytes, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
    reader.Read(&found.constSizeBytes, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES);
    reader.Read(&found.localSizeBytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
    reader.Read(&found.numRegs, CU_FUNC_ATTRIBUTE_NUM_REGS);
    reader.Read(&found.ptxVersion, CU_FUNC_ATTRIBUTE_PTX_VERSION);
    reader.Read(&found.binaryVersion, CU_FUNC_ATTRIBUTE_BINARY_VERSION);
    reader.Read(&found.cacheModeCA, CU_FUNC_ATTRIBUTE_CACHE_MODE_CA);
    reader.Read(&found.maxDynamicSharedSizeBytes,
                CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    reader.Read(&found.preferredShmemCarveout,
                CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
    if (reader.result() == CUDA_SUCCESS) *attributes = found;
    return reader.result();
  });
}

cudaError_t FuncSetAttribute(const void* stub, cudaFuncAttribute attribute,
                             int value) {
  return WithKernel(stub, [&](CUfunction function) {
    return cuFuncSetAttribute(
        function, static_cast<CUfunction_attribute>(attribute), value);
  });
}

cudaError_t FuncSetCacheConfig(const void* stub, cudaFuncCache) {
  return WithKernel(stub, [](CUfunction) { return CUDA_SUCCESS; });
}

cudaError_t FuncGetName(const char** name, const void* stub) {
  return WithKernel(
      stub, [&](CUfunction function) { return cuFuncGetName(name, function); });
}

cudaError_t OccupancyMaxActiveBlocks(int* blocks, const void* stub, int threads,
                                     std::size_t shared_bytes) {
  return OccupancyMaxActiveBlocksWithFlags(blocks, stub, threads, shared_bytes,
                                           0);
}

cudaError_t OccupancyMaxActiveBlocksWithFlags(int* blocks, const void* stub,
                                              int threads,
                                              std::size_t shared_bytes,
                                              unsigned flags) {
  return WithKernel(stub, [&](CUfunction function) {
    return cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks, function, threads, shared_bytes, flags);
  });
}

cudaError_t OccupancyAvailableSharedMemory(std::size_t* bytes, const void* stub,
                                           int blocks, int threads) {
  return WithKernel(stub, [&](CUfunction) {
    if (bytes == nullptr || blocks <= 0 || threads <= 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    int whole = 0;
    const CUresult result = cuDeviceGetAttribute(
        &whole, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
        ThreadDevice());
    if (result == CUDA_SUCCESS) {
      *bytes = static_cast<std::size_t>(whole / blocks);
    }
    return result;
  });
}

// Returns the size for a kernel that needs no more than every device has.
cudaError_t OccupancyMaxClusterSize(int* size, const void* stub,
                                    const cudaLaunchConfig_t* config) {
  return WithKernel(stub, [&](CUfunction) {
    return config != nullptr ? Put(size, 8) : CUDA_ERROR_INVALID_VALUE;
  });
}

cudaError_t OccupancyMaxActiveClusters(int* count, const void* stub,
                                       const cudaLaunchConfig_t* config) {
  return WithKernel(stub, [&](CUfunction) {
    return config != nullptr ? Put(count, 1) : CUDA_ERROR_INVALID_VALUE;
  });
}

}  // namespace strata::simdriver::runtime
