// Variables of the program that live on the device.

#include "strata/platform/simdriver/runtime/calls.h"
#include "strata/platform/simdriver/runtime/program_images.h"

namespace strata::simdriver::runtime {
namespace {

// Runs `body(CUdeviceptr)`, which returns a CUresult, with the address of the
// bytes [offset, offset + bytes) of `symbol`.
template <class Body>
cudaError_t WithBytes(const void* symbol, std::size_t offset, std::size_t bytes,
                      Body body) {
  return WithContext([&] {
    std::size_t size = 0;
    if (!Images().FindSize(symbol, &size)) return cudaErrorInvalidSymbol;
    if (offset > size || bytes > size - offset) return cudaErrorInvalidValue;
    CUdeviceptr ptr = 0;
    const CUresult result = Images().FindVariable(symbol, ThreadDevice(), &ptr);
    if (result == CUDA_ERROR_NOT_FOUND) return cudaErrorInvalidSymbol;
    return ToError(result == CUDA_SUCCESS ? body(ptr + offset) : result);
  });
}

}  // namespace

cudaError_t GetSymbolAddress(void** ptr, const void* symbol) {
  if (ptr == nullptr) return WithContext([] { return cudaErrorInvalidValue; });
  return WithBytes(symbol, 0, 0, [&](CUdeviceptr found) {
    return Put(ptr, reinterpret_cast<void*>(found));
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
  return WithBytes(symbol, offset, bytes, [&](CUdeviceptr ptr) {
    return cuMemcpyAsync(ptr, ToPtr(source), bytes, StreamOf(null, stream));
  });
}

cudaError_t MemcpyFromSymbolAsync(NullStream null, void* target,
                                  const void* symbol, std::size_t bytes,
                                  std::size_t offset, cudaMemcpyKind,
                                  cudaStream_t stream) {
  return WithBytes(symbol, offset, bytes, [&](CUdeviceptr ptr) {
    return cuMemcpyAsync(ToPtr(target), ptr, bytes, StreamOf(null, stream));
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
