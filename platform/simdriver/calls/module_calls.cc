// Modules and kernels.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "strata/platform/cuda/cuda_work_arguments.h"
#include "strata/platform/device_work.h"
#include "strata/platform/simdriver/attributes.h"
#include "strata/platform/simdriver/context.h"
#include "strata/platform/simdriver/counters.h"

namespace strata::simdriver {
namespace {

// The kernel of CudaWork, which the simulated device carries out.
constexpr char kWorkKernel[] = "strata_work";
constexpr std::uint64_t kWordBytes = 8;

struct Function {
  std::string name;
  CUmodule module = nullptr;
  bool is_work = false;
};

// The modules that the program loaded. Each name that it asks for is a kernel.
class ModuleList {
 public:
  CUmodule Load() {
    auto functions = std::make_unique<Functions>();
    std::lock_guard lock(mutex_);
    auto* const handle = reinterpret_cast<CUmodule>(functions.get());
    modules_.emplace(handle, std::move(functions));
    return handle;
  }

  // False if there is no such module.
  bool Unload(CUmodule module) {
    std::lock_guard lock(mutex_);
    const auto found = modules_.find(module);
    if (found == modules_.end()) return false;
    for (const auto& [name, function] : *found->second) {
      live_.erase(HandleOf(function.get()));
    }
    modules_.erase(found);
    return true;
  }

  // Null if there is no such module.
  CUfunction Get(CUmodule module, const char* name) {
    std::lock_guard lock(mutex_);
    const auto found = modules_.find(module);
    if (found == modules_.end()) return nullptr;
    std::shared_ptr<Function>& function = (*found->second)[name];
    if (function == nullptr) {
      function = std::make_shared<Function>(
          Function{name, module, std::string(name) == kWorkKernel});
      live_.emplace(HandleOf(function.get()), function);
    }
    return HandleOf(function.get());
  }

  // Null if there is no such function.
  std::shared_ptr<Function> Find(CUfunction handle) {
    std::lock_guard lock(mutex_);
    const auto found = live_.find(handle);
    return found != live_.end() ? found->second : nullptr;
  }

 private:
  using Functions = std::unordered_map<std::string, std::shared_ptr<Function>>;

  static CUfunction HandleOf(Function* function) {
    return reinterpret_cast<CUfunction>(function);
  }

  std::mutex mutex_;
  std::unordered_map<CUmodule, std::unique_ptr<Functions>> modules_;
  std::unordered_map<CUfunction, std::shared_ptr<Function>> live_;
};

ModuleList& Modules() {
  static auto* const modules = new ModuleList();
  return *modules;
}

CUresult Load(CUmodule* module, const void* image) {
  return OnCurrentDevice([&](SimDevice&) {
    if (module == nullptr || image == nullptr) return Status::kInvalidValue;
    *module = Modules().Load();
    return Status::kSuccess;
  });
}

// Runs `body(const Function&)` if there is a function `handle`.
template <class Body>
CUresult OnFunction(CUfunction handle, Body body) {
  const CUresult result = Ready();
  if (result != CUDA_SUCCESS) return result;
  const std::shared_ptr<Function> function = Modules().Find(handle);
  return function != nullptr ? body(*function) : CUDA_ERROR_INVALID_HANDLE;
}

// The value of `attribute` of any kernel.
int FunctionAttribute(CUfunction_attribute attribute,
                      const DriverOptions& options) {
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      return kMaxThreadsPerBlock;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      return 32;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      return 10 * options.compute_major + options.compute_minor;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      return 48 << 10;
    default:
      return 0;
  }
}

struct LaunchShape {
  std::array<unsigned, 3> grid;
  std::array<unsigned, 3> block;
};

bool IsValid(const LaunchShape& shape) {
  const auto is_zero = [](unsigned extent) { return extent == 0; };
  return std::none_of(shape.grid.begin(), shape.grid.end(), is_zero) &&
         std::none_of(shape.block.begin(), shape.block.end(), is_zero) &&
         std::uint64_t{shape.block[0]} * shape.block[1] * shape.block[2] <=
             static_cast<unsigned>(kMaxThreadsPerBlock);
}

// Enqueues the work that a launch of the kernel of CudaWork describes.
Status Work(DeviceWork& work, const Stream& stream, void** parameters) {
  if (parameters == nullptr || parameters[0] == nullptr) {
    return Status::kInvalidValue;
  }
  const auto& arguments =
      *static_cast<const cuda::CudaWorkArguments*>(parameters[0]);
  if (arguments.count > kMaxWorkRanges) return Status::kInvalidValue;
  std::array<WorkRange, kMaxWorkRanges> ranges;
  for (std::size_t i = 0; i < arguments.count; ++i) {
    const cuda::CudaWorkArguments::Range& range = arguments.ranges[i];
    ranges[i] = {range.ptr, range.words * kWordBytes, range.write != 0};
  }
  return work.Enqueue(stream, ranges.data(), arguments.count, arguments.busy_ns,
                      arguments.pattern);
}

CUresult Launch(NullStream null, CUfunction handle, const LaunchShape& shape,
                CUstream stream_handle, void** parameters) {
  return OnStream(null, stream_handle, [&](SimDevice&, const Stream& stream) {
    const std::shared_ptr<Function> function = Modules().Find(handle);
    if (function == nullptr) return Status::kInvalidResourceHandle;
    if (!IsValid(shape)) return Status::kInvalidValue;
    DeviceWork& work = *FindProcess()->platform.work(stream.device);
    if (function->is_work) return Work(work, stream, parameters);
    // A kernel of the program: it takes time in its stream.
    const Status status =
        work.Enqueue(stream, nullptr, 0, FindProcess()->options.kernel_ns, 0);
    if (status == Status::kSuccess) CountSkippedKernel();
    return status;
  });
}

// The kernel needs few registers: the threads alone limit the blocks.
CUresult CountBlocks(int* blocks, CUfunction function, int threads) {
  return OnFunction(function, [&](const Function&) {
    if (blocks == nullptr || threads <= 0) return CUDA_ERROR_INVALID_VALUE;
    *blocks = std::clamp(kMaxThreadsPerMultiprocessor / threads, 1,
                         kMaxBlocksPerMultiprocessor);
    return CUDA_SUCCESS;
  });
}

CUresult ChooseBlocks(int* grid, int* block, CUfunction function, int limit) {
  return OnFunction(function, [&](const Function&) {
    if (grid == nullptr || block == nullptr || limit < 0) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *block =
        limit == 0 ? kMaxThreadsPerBlock : std::min(limit, kMaxThreadsPerBlock);
    *grid = kMultiprocessors * std::clamp(kMaxThreadsPerMultiprocessor / *block,
                                          1, kMaxBlocksPerMultiprocessor);
    return CUDA_SUCCESS;
  });
}

}  // namespace

CUresult ModuleLoad(CUmodule* module, const char* path) {
  const CUresult result = Ready();
  if (result != CUDA_SUCCESS) return result;
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  if (access(path, R_OK) != 0) return CUDA_ERROR_FILE_NOT_FOUND;
  return Load(module, path);
}

CUresult ModuleLoadData(CUmodule* module, const void* image) {
  return Load(module, image);
}

CUresult ModuleLoadDataEx(CUmodule* module, const void* image, unsigned,
                          CUjit_option*, void**) {
  return Load(module, image);
}

CUresult ModuleLoadFatBinary(CUmodule* module, const void* image) {
  return Load(module, image);
}

CUresult ModuleUnload(CUmodule module) {
  return OnCurrentDevice([&](SimDevice&) {
    return Modules().Unload(module) ? Status::kSuccess
                                    : Status::kInvalidResourceHandle;
  });
}

CUresult ModuleGetFunction(CUfunction* function, CUmodule module,
                           const char* name) {
  return OnCurrentDevice([&](SimDevice&) {
    if (function == nullptr || name == nullptr) return Status::kInvalidValue;
    auto* const found = Modules().Get(module, name);
    if (found == nullptr) return Status::kInvalidResourceHandle;
    *function = found;
    return Status::kSuccess;
  });
}

CUresult ModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return PutIf(Ready(), mode, [] { return CU_MODULE_LAZY_LOADING; });
}

CUresult FuncGetName(const char** name, CUfunction handle) {
  return OnFunction(handle, [&](const Function& function) {
    return PutIf(CUDA_SUCCESS, name, [&] { return function.name.c_str(); });
  });
}

CUresult FuncGetModule(CUmodule* module, CUfunction handle) {
  return OnFunction(handle, [&](const Function& function) {
    return PutIf(CUDA_SUCCESS, module, [&] { return function.module; });
  });
}

CUresult FuncGetAttribute(int* value, CUfunction_attribute attribute,
                          CUfunction handle) {
  return OnFunction(handle, [&](const Function&) {
    if (value == nullptr || attribute < 0 ||
        attribute >= CU_FUNC_ATTRIBUTE_MAX) {
      return CUDA_ERROR_INVALID_VALUE;
    }
    *value = FunctionAttribute(attribute, FindProcess()->options);
    return CUDA_SUCCESS;
  });
}

// A kernel that does nothing needs no resources.
CUresult FuncSetAttribute(CUfunction handle, CUfunction_attribute attribute,
                          int) {
  return OnFunction(handle, [&](const Function&) {
    return attribute >= 0 && attribute < CU_FUNC_ATTRIBUTE_MAX
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_VALUE;
  });
}

CUresult LaunchKernel(NullStream null, CUfunction function, unsigned grid_x,
                      unsigned grid_y, unsigned grid_z, unsigned block_x,
                      unsigned block_y, unsigned block_z, unsigned,
                      CUstream stream, void** parameters, void**) {
  const LaunchShape shape{{grid_x, grid_y, grid_z},
                          {block_x, block_y, block_z}};
  return Launch(null, function, shape, stream, parameters);
}

CUresult LaunchCooperativeKernel(NullStream null, CUfunction function,
                                 unsigned grid_x, unsigned grid_y,
                                 unsigned grid_z, unsigned block_x,
                                 unsigned block_y, unsigned block_z,
                                 unsigned shared_bytes, CUstream stream,
                                 void** parameters) {
  return LaunchKernel(null, function, grid_x, grid_y, grid_z, block_x, block_y,
                      block_z, shared_bytes, stream, parameters, nullptr);
}

CUresult LaunchKernelEx(NullStream null, const CUlaunchConfig* config,
                        CUfunction function, void** parameters, void**) {
  if (config == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const LaunchShape shape{
      {config->gridDimX, config->gridDimY, config->gridDimZ},
      {config->blockDimX, config->blockDimY, config->blockDimZ}};
  return Launch(null, function, shape, config->hStream, parameters);
}

CUresult OccupancyMaxActiveBlocks(int* blocks, CUfunction function, int threads,
                                  std::size_t) {
  return CountBlocks(blocks, function, threads);
}

CUresult OccupancyMaxActiveBlocksWithFlags(int* blocks, CUfunction function,
                                           int threads, std::size_t, unsigned) {
  return CountBlocks(blocks, function, threads);
}

CUresult OccupancyMaxBlockSize(int* grid, int* block, CUfunction function,
                               CUoccupancyB2DSize, std::size_t, int limit) {
  return ChooseBlocks(grid, block, function, limit);
}

CUresult OccupancyMaxBlockSizeWithFlags(int* grid, int* block,
                                        CUfunction function, CUoccupancyB2DSize,
                                        std::size_t, int limit, unsigned) {
  return ChooseBlocks(grid, block, function, limit);
}

}  // namespace strata::simdriver
