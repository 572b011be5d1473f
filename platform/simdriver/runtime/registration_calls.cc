// Calls of the host code that a compiler makes for kernels.

#include "strata/platform/simdriver/runtime/calls.h"
#include "strata/platform/simdriver/runtime/program_images.h"

namespace strata::simdriver::runtime {
namespace {

// The shape of a launch between the two halves of `kernel<<<...>>>(...)`.
struct Configuration {
  dim3 grid;
  dim3 block;
  std::size_t shared_bytes;
  cudaStream_t stream;
};

// The launches that a thread prepares at present. The arguments of a launch may
// contain another launch.
struct ConfigurationStack {
  static constexpr std::size_t kMost = 32;

  // Bytes, so that the stack needs no constructor.
  alignas(Configuration) unsigned char entries[kMost * sizeof(Configuration)];
  std::size_t count;

  Configuration* At(std::size_t index) {
    return reinterpret_cast<Configuration*>(entries) + index;
  }
};

thread_local constinit ConfigurationStack t_configurations{};

}  // namespace

void** RegisterFatBinary(void* image) { return Images().Add(image); }

void RegisterFatBinaryEnd(void**) {}

void UnregisterFatBinary(void** handle) { Images().Remove(handle); }

void RegisterFunction(void** handle, const char* stub, char*,
                      const char* device_name, int, uint3*, uint3*, dim3*,
                      dim3*, int*) {
  Images().AddKernel(handle, stub, device_name);
}

void RegisterVar(void** handle, char* host_variable, char*, const char*, int,
                 std::size_t bytes, int, int) {
  Images().AddVariable(handle, host_variable, bytes);
}

void RegisterManagedVar(void** handle, void** host_pointer, char*, const char*,
                        int, std::size_t bytes, int, int) {
  Images().AddManaged(handle, host_pointer, bytes);
}

// Code of the compiler calls it before the host first uses a managed variable
// of the image.
char InitModule(void** handle) {
  const cudaError_t error =
      WithContext([&] { return Images().MakeManaged(handle); });
  return error == cudaSuccess ? 1 : 0;
}

unsigned PushCallConfiguration(dim3 grid, dim3 block, std::size_t shared_bytes,
                               CUstream_st* stream) {
  ConfigurationStack& stack = t_configurations;
  if (stack.count == ConfigurationStack::kMost) return cudaErrorUnknown;
  *stack.At(stack.count++) = {grid, block, shared_bytes, stream};
  return 0;
}

cudaError_t PopCallConfiguration(dim3* grid, dim3* block,
                                 std::size_t* shared_bytes, void* stream) {
  ConfigurationStack& stack = t_configurations;
  if (stack.count == 0) return Note(cudaErrorMissingConfiguration);
  const Configuration& top = *stack.At(--stack.count);
  *grid = top.grid;
  *block = top.block;
  *shared_bytes = top.shared_bytes;
  *static_cast<cudaStream_t*>(stream) = top.stream;
  return cudaSuccess;
}

}  // namespace strata::simdriver::runtime
