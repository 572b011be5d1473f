#ifndef STRATA_PLATFORM_SIMDRIVER_RUNTIME_PROGRAM_IMAGES_H_
#define STRATA_PLATFORM_SIMDRIVER_RUNTIME_PROGRAM_IMAGES_H_

#include <cuda.h>

#include <cstddef>
#include <map>
#include <memory>
#include <shared_mutex>
#include <unordered_map>
#include <utility>
#include <vector>

namespace strata::simdriver::runtime {

// The fat binaries of the program, with their kernels and variables.
// Constructors of the program register them.
//
// Model: registration calls no driver. The first use of a kernel loads the
//   module. The first use of a variable allocates device memory for it, which
//   is never freed. Names belong to the program and live as long as its image.
// Threads: any. No lock is held during a call of the driver.
class ProgramImages {
 public:
  // Returns the handle that the other functions take.
  void** Add(const void* image);
  void Remove(void** handle);
  void AddKernel(void** handle, const void* stub, const char* name);
  void AddVariable(void** handle, const void* host_variable, std::size_t bytes);
  // A variable of managed memory. MakeManaged() writes its address to
  // `*host_pointer`.
  void AddManaged(void** handle, void** host_pointer, std::size_t bytes);

  // Allocates the managed variables of the image that have no memory yet.
  CUresult MakeManaged(void** handle);

  // The function of the driver for the kernel of `stub`. `stub` may be such a
  // function, too.
  //
  // Errors: CUDA_ERROR_NOT_FOUND if there is no such kernel, else as the
  //   driver.
  CUresult FindKernel(const void* stub, CUfunction* function);
  // The memory of a variable on `device`, the current one.
  //
  // Errors: as FindKernel.
  CUresult FindVariable(const void* host_variable, int device,
                        CUdeviceptr* ptr);
  // False if there is no such variable.
  bool FindSize(const void* host_variable, std::size_t* bytes) const;

 private:
  struct Image {
    const void* data = nullptr;
    CUmodule module = nullptr;  // null before the first use
    std::vector<const void*> stubs;
    std::vector<const void*> variables;
    std::vector<std::pair<void**, std::size_t>> managed;  // without memory
  };
  struct Kernel {
    Image* image = nullptr;
    const char* name = nullptr;
    CUfunction function = nullptr;  // null before the first use
  };
  struct Variable {
    std::size_t bytes = 0;
    std::map<int, CUdeviceptr> memory;  // by device
  };

  CUresult ModuleOf(const void* stub, CUmodule* module, const char** name);

  mutable std::shared_mutex mutex_;
  // All guarded by mutex_.
  std::unordered_map<void**, std::unique_ptr<Image>> images_;
  std::unordered_map<const void*, Kernel> kernels_;      // by stub
  std::unordered_map<const void*, Variable> variables_;  // by host variable
};

// The images of this process.
ProgramImages& Images();

}  // namespace strata::simdriver::runtime

#endif  // STRATA_PLATFORM_SIMDRIVER_RUNTIME_PROGRAM_IMAGES_H_
