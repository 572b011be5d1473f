#include "strata/platform/simdriver/runtime/program_images.h"

#include <mutex>
#include <utility>

namespace strata::simdriver::runtime {

ProgramImages& Images() {
  static auto* const images = new ProgramImages();
  return *images;
}

void** ProgramImages::Add(const void* image) {
  auto made = std::make_unique<Image>();
  made->data = image;
  auto** const handle = reinterpret_cast<void**>(made.get());
  std::unique_lock lock(mutex_);
  images_.emplace(handle, std::move(made));
  return handle;
}

void ProgramImages::Remove(void** handle) {
  std::unique_lock lock(mutex_);
  const auto found = images_.find(handle);
  if (found == images_.end()) return;
  for (const void* const stub : found->second->stubs) kernels_.erase(stub);
  for (const void* const variable : found->second->variables) {
    variables_.erase(variable);
  }
  images_.erase(found);
}

void ProgramImages::AddKernel(void** handle, const void* stub,
                              const char* name) {
  std::unique_lock lock(mutex_);
  const auto found = images_.find(handle);
  if (found == images_.end()) return;
  Image* const image = found->second.get();
  kernels_.insert_or_assign(stub, Kernel{image, name, nullptr});
  image->stubs.push_back(stub);
}

void ProgramImages::AddVariable(void** handle, const void* host_variable,
                                std::size_t bytes) {
  std::unique_lock lock(mutex_);
  const auto found = images_.find(handle);
  if (found == images_.end()) return;
  variables_.insert_or_assign(host_variable, Variable{bytes, {}});
  found->second->variables.push_back(host_variable);
}

void ProgramImages::AddManaged(void** handle, void** host_pointer,
                               std::size_t bytes) {
  std::unique_lock lock(mutex_);
  const auto found = images_.find(handle);
  if (found == images_.end()) return;
  found->second->managed.emplace_back(host_pointer, bytes);
}

CUresult ProgramImages::MakeManaged(void** handle) {
  std::vector<std::pair<void**, std::size_t>> managed;
  {
    std::unique_lock lock(mutex_);
    const auto found = images_.find(handle);
    if (found == images_.end()) return CUDA_ERROR_NOT_FOUND;
    managed.swap(found->second->managed);
  }
  for (const auto& [host_pointer, bytes] : managed) {
    CUdeviceptr made = 0;
    const CUresult result =
        cuMemAllocManaged(&made, bytes, CU_MEM_ATTACH_GLOBAL);
    if (result != CUDA_SUCCESS) return result;
    *host_pointer = reinterpret_cast<void*>(made);
  }
  return CUDA_SUCCESS;
}

CUresult ProgramImages::ModuleOf(const void* stub, CUmodule* module,
                                 const char** name) {
  const void* data = nullptr;
  {
    std::shared_lock lock(mutex_);
    const auto found = kernels_.find(stub);
    if (found == kernels_.end()) return CUDA_ERROR_NOT_FOUND;
    *name = found->second.name;
    *module = found->second.image->module;
    data = found->second.image->data;
  }
  if (*module != nullptr) return CUDA_SUCCESS;
  CUmodule made = nullptr;
  const CUresult result = cuModuleLoadFatBinary(&made, data);
  if (result != CUDA_SUCCESS) return result;
  {
    std::unique_lock lock(mutex_);
    const auto found = kernels_.find(stub);
    if (found != kernels_.end()) {
      Image& image = *found->second.image;
      if (image.module == nullptr) image.module = std::exchange(made, nullptr);
      *module = image.module;
    }
  }
  // Another thread was first, or the program has removed the image.
  if (made != nullptr) cuModuleUnload(made);
  return *module != nullptr ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

CUresult ProgramImages::FindKernel(const void* stub, CUfunction* function) {
  {
    std::shared_lock lock(mutex_);
    const auto found = kernels_.find(stub);
    if (found != kernels_.end() && found->second.function != nullptr) {
      *function = found->second.function;
      return CUDA_SUCCESS;
    }
  }
  CUmodule module = nullptr;
  const char* name = nullptr;
  CUresult result = ModuleOf(stub, &module, &name);
  if (result == CUDA_ERROR_NOT_FOUND) {
    auto* const handle =
        reinterpret_cast<CUfunction>(const_cast<void*>(stub));  // NOLINT
    if (cuFuncGetName(&name, handle) != CUDA_SUCCESS) return result;
    *function = handle;
    return CUDA_SUCCESS;
  }
  if (result == CUDA_SUCCESS) {
    result = cuModuleGetFunction(function, module, name);
  }
  if (result != CUDA_SUCCESS) return result;
  std::unique_lock lock(mutex_);
  const auto found = kernels_.find(stub);
  if (found != kernels_.end()) found->second.function = *function;
  return CUDA_SUCCESS;
}

bool ProgramImages::FindSize(const void* host_variable,
                             std::size_t* bytes) const {
  std::shared_lock lock(mutex_);
  const auto found = variables_.find(host_variable);
  if (found == variables_.end()) return false;
  *bytes = found->second.bytes;
  return true;
}

CUresult ProgramImages::FindVariable(const void* host_variable, int device,
                                     CUdeviceptr* ptr) {
  std::size_t bytes = 0;
  {
    std::shared_lock lock(mutex_);
    const auto found = variables_.find(host_variable);
    if (found == variables_.end()) return CUDA_ERROR_NOT_FOUND;
    const auto memory = found->second.memory.find(device);
    if (memory != found->second.memory.end()) {
      *ptr = memory->second;
      return CUDA_SUCCESS;
    }
    bytes = found->second.bytes;
  }
  CUdeviceptr made = 0;
  const CUresult result = cuMemAlloc(&made, bytes);
  if (result != CUDA_SUCCESS) return result;
  CUdeviceptr surplus = made;
  *ptr = 0;
  {
    std::unique_lock lock(mutex_);
    const auto found = variables_.find(host_variable);
    if (found != variables_.end()) {
      const auto [memory, is_first] =
          found->second.memory.emplace(device, made);
      *ptr = memory->second;
      if (is_first) surplus = 0;
    }
  }
  if (surplus != 0) cuMemFree(surplus);
  return *ptr != 0 ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

}  // namespace strata::simdriver::runtime
