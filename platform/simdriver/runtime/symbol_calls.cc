// Variables of the program that live on the device.

#include "strata/platform/simdriver/runtime/calls.h"
#include "strata/platform/simdriver/runtime/contexts.h"
#include "strata/platform/simdriver/runtime/program_images.h"

namespace strata::simdriver::runtime {
namespace {

// The address of `symbol`, of which [offset, offset + bytes) is to be used.
cudaError_t FindBytes(const void* symbol, std::size_t offset, std::size_t bytes,
                      CUdeviceptr* ptr) {
  std::size_t size = 0;
  if (!Images().FindSize(symbol, &size)) return cudaErrorInvalidSymbol;
  if (offset > size || bytes > size - offset) return cudaErrorInvalidValue;
  const CUresult result = Images().FindVariable(symbol, ThreadDevice(), ptr);
  *ptr += offset;
  return result == CUDA_ERROR_NOT_FOUND ? cudaErrorInvalidSymbol
                                        : ToError(result);
}

}  // namespace

cudaError_t GetSymbolAddress(void** ptr, const void* symbol) {
  return WithContext([&] {
    if (ptr == nullptr) return cudaErrorInvalidValue;
    CUdeviceptr found = 0;
    const cudaError_t error = FindBytes(symbol, 0, 0, &found);
    if (error == cudaSuccess) *ptr = reinterpret_cast<void*>(found);
    return error;
  });
}

cudaError_t GetSymbolSize(std::size_t* bytes, const void* symbol) {
  return WithContext([&] {
    if (bytes == nullptr) return cudaErrorInvalidValue;
    return Images().FindSize(symbol, bytes) ? cudaSuccess
                                            : cudaErrorInvalidSymbol;
  });
}

cudaError_t MemcpyToSymbolAsync(NullStream null, const void* symbol,
                                const void* source, std::size_t bytes,
                                std::size_t offset, cudaMemcpyKind,
                                cudaStream_t stream) {
  return WithContext([&] {
    CUdeviceptr ptr = 0;
    const cudaError_t error = FindBytes(symbol, offset, bytes, &ptr);
    if (error != cudaSuccess) return error;
    return ToError(
        cuMemcpyAsync(ptr, ToPtr(source), bytes, StreamOf(null, stream)));
  });
}

cudaError_t MemcpyFromSymbolAsync(NullStream null, void* target,
                                  const void* symbol, std::size_t bytes,
                                  std::size_t offset, cudaMemcpyKind,
                                  cudaStream_t stream) {
  return WithContext([&] {
    CUdeviceptr ptr = 0;
    const cudaError_t error = FindBytes(symbol, offset, bytes, &ptr);
    if (error != cudaSuccess) return error;
    return ToError(
        cuMemcpyAsync(ToPtr(target), ptr, bytes, StreamOf(null, stream)));
  });
}

cudaError_t MemcpyToSymbol(NullStream null, const void* symbol,
                           const void* source, std::size_t bytes,
                           std::size_t offset, cudaMemcpyKind kind) {
  const cudaError_t error =
      MemcpyToSymbolAsync(null, symbol, source, bytes, offset, kind, nullptr);
  return error == cudaSuccess ? StreamSynchronize(null, nullptr) : error;
}

cudaError_t MemcpyFromSymbol(NullStream null, void* target, const void* symbol,
                             std::size_t bytes, std::size_t offset,
                             cudaMemcpyKind kind) {
  const cudaError_t error =
      MemcpyFromSymbolAsync(null, target, symbol, bytes, offset, kind, nullptr);
  return error == cudaSuccess ? StreamSynchronize(null, nullptr) : error;
}

}  // namespace strata::simdriver::runtime
