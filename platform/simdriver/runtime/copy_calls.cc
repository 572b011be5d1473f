// Copies and fills. The addresses determine the kind of a copy, so the argument
// for the kind is only checked.

#include "strata/platform/simdriver/runtime/calls.h"

namespace strata::simdriver::runtime {
namespace {

bool IsKind(cudaMemcpyKind kind) {
  return kind >= cudaMemcpyHostToHost && kind <= cudaMemcpyDefault;
}

// The rows of two blocks of memory, or of one.
struct Rows {
  std::size_t width;
  std::size_t height;
};

// Runs `body()`, and waits for the work that it submits to `stream`.
template <class Body>
CUresult AndWait(cudaStream_t stream, Body body) {
  const CUresult result = body();
  return result == CUDA_SUCCESS ? cuStreamSynchronize(stream) : result;
}

CUresult CopyRows(CUdeviceptr target, std::size_t target_pitch,
                  CUdeviceptr source, std::size_t source_pitch, Rows rows,
                  cudaStream_t stream) {
  if (rows.width == 0 || rows.height == 0) return CUDA_SUCCESS;
  if (rows.width > target_pitch || rows.width > source_pitch) {
    return static_cast<CUresult>(cudaErrorInvalidPitchValue);
  }
  if (rows.width == target_pitch && rows.width == source_pitch) {
    return cuMemcpyAsync(target, source, rows.width * rows.height, stream);
  }
  for (std::size_t row = 0; row < rows.height; ++row) {
    const CUresult result =
        cuMemcpyAsync(target + row * target_pitch, source + row * source_pitch,
                      rows.width, stream);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

CUresult FillRows(CUdeviceptr ptr, std::size_t pitch, int value, Rows rows,
                  cudaStream_t stream) {
  const auto byte = static_cast<unsigned char>(value);
  if (rows.width == 0 || rows.height == 0) return CUDA_SUCCESS;
  if (rows.width > pitch && rows.height > 1) {
    return static_cast<CUresult>(cudaErrorInvalidPitchValue);
  }
  if (rows.width == pitch || rows.height == 1) {
    return cuMemsetD8Async(ptr, byte, rows.width * rows.height, stream);
  }
  for (std::size_t row = 0; row < rows.height; ++row) {
    const CUresult result =
        cuMemsetD8Async(ptr + row * pitch, byte, rows.width, stream);
    if (result != CUDA_SUCCESS) return result;
  }
  return CUDA_SUCCESS;
}

// Runs `body()`, which returns a CUresult, if `kind` is valid.
template <class Body>
cudaError_t OfKind(cudaMemcpyKind kind, Body body) {
  return WithContext([&] {
    return IsKind(kind) ? ToError(body()) : cudaErrorInvalidMemcpyDirection;
  });
}

}  // namespace

cudaError_t Memcpy(NullStream null, void* target, const void* source,
                   std::size_t bytes, cudaMemcpyKind kind) {
  return OfKind(kind, [&] {
    if (bytes == 0) return CUDA_SUCCESS;
    return AndWait(StreamOf(null, nullptr), [&] {
      return cuMemcpyAsync(ToPtr(target), ToPtr(source), bytes,
                           StreamOf(null, nullptr));
    });
  });
}

cudaError_t MemcpyAsync(NullStream null, void* target, const void* source,
                        std::size_t bytes, cudaMemcpyKind kind,
                        cudaStream_t stream) {
  return OfKind(kind, [&] {
    return cuMemcpyAsync(ToPtr(target), ToPtr(source), bytes,
                         StreamOf(null, stream));
  });
}

cudaError_t Memcpy2D(NullStream null, void* target, std::size_t target_pitch,
                     const void* source, std::size_t source_pitch,
                     std::size_t width, std::size_t height,
                     cudaMemcpyKind kind) {
  return OfKind(kind, [&] {
    return AndWait(StreamOf(null, nullptr), [&] {
      return CopyRows(ToPtr(target), target_pitch, ToPtr(source), source_pitch,
                      {width, height}, StreamOf(null, nullptr));
    });
  });
}

cudaError_t Memcpy2DAsync(NullStream null, void* target,
                          std::size_t target_pitch, const void* source,
                          std::size_t source_pitch, std::size_t width,
                          std::size_t height, cudaMemcpyKind kind,
                          cudaStream_t stream) {
  return OfKind(kind, [&] {
    return CopyRows(ToPtr(target), target_pitch, ToPtr(source), source_pitch,
                    {width, height}, StreamOf(null, stream));
  });
}

cudaError_t MemcpyPeer(void* target, int, const void* source, int,
                       std::size_t bytes) {
  return Memcpy(NullStream::kLegacy, target, source, bytes, cudaMemcpyDefault);
}

cudaError_t MemcpyPeerAsync(void* target, int, const void* source, int,
                            std::size_t bytes, cudaStream_t stream) {
  return MemcpyAsync(NullStream::kLegacy, target, source, bytes,
                     cudaMemcpyDefault, stream);
}

cudaError_t Memset(NullStream null, void* ptr, int value, std::size_t bytes) {
  return MemsetAsync(null, ptr, value, bytes, nullptr);
}

cudaError_t MemsetAsync(NullStream null, void* ptr, int value,
                        std::size_t bytes, cudaStream_t stream) {
  return WithContext([&] {
    return FillRows(ToPtr(ptr), bytes, value, {bytes, 1},
                    StreamOf(null, stream));
  });
}

cudaError_t Memset2D(NullStream null, void* ptr, std::size_t pitch, int value,
                     std::size_t width, std::size_t height) {
  return Memset2DAsync(null, ptr, pitch, value, width, height, nullptr);
}

cudaError_t Memset2DAsync(NullStream null, void* ptr, std::size_t pitch,
                          int value, std::size_t width, std::size_t height,
                          cudaStream_t stream) {
  return WithContext([&] {
    return FillRows(ToPtr(ptr), pitch, value, {width, height},
                    StreamOf(null, stream));
  });
}

}  // namespace strata::simdriver::runtime
