#ifndef STRATA_BINDINGS_ADAPTERS_CUDA_MR_H_
#define STRATA_BINDINGS_ADAPTERS_CUDA_MR_H_

#include <cstddef>
#include <cuda/memory_resource>
#include <cuda/stream_ref>
#include <cuda/version>
#include <memory>
#include <utility>

#include "strata/bindings/c/plain_memory.h"
#include "strata/facade/allocator_facade.h"

#if CCCL_VERSION < 3001000 && \
    !defined(LIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE)
#error "CCCL before 3.1 needs -DLIBCUDACXX_ENABLE_EXPERIMENTAL_MEMORY_RESOURCE"
#endif

namespace strata::mr {

class device_resource;

#if CCCL_VERSION >= 3005000
using device_resource_base = cuda::mr::memory_resource_base<device_resource>;
#else
struct device_resource_base {};
#endif

// Device memory of a facade as a memory resource of CCCL: for
// cuda::mr::any_resource, cuda::mr::resource_ref, and RMM 26 or newer.
//
// Model: the names are those of CCCL's concepts: cuda::mr::resource of 3.1 and
//   newer, cuda::mr::async_resource of 3.0. Copies share one resource, compare
//   equal, and can free each other's memory. A request for 0 bytes returns
//   null.
// Errors: allocation throws std::bad_alloc (strata::OutOfMemory) if memory or a
//   limit is exhausted; other errors are as for AllocatorFacade::Alloc().
//   Deallocation of an address that is not allocated is logged.
// Threads: any thread.
// Lifetime: the last copy frees all memory not yet deallocated. Keeps the
//   facade alive.
// Source: rmm_cccl_umpire.md §3.1.
class device_resource : public device_resource_base {
 public:
  // Errors: std::invalid_argument if the facade is null, or has no such device.
  explicit device_resource(std::shared_ptr<AllocatorFacade> facade,
                           int device = 0)
      : memory_(std::make_shared<PlainMemory>(std::move(facade),
                                              DevicePlace(device))) {}

  void* allocate(cuda::stream_ref stream, std::size_t bytes,
                 std::size_t alignment = kAlignment) {
    return memory_->Allocate(bytes, alignment, stream.get());
  }
  // Frees `data`. The last use must be submitted to `stream`, or ordered before
  // the next work submitted there.
  void deallocate(cuda::stream_ref stream, void* data, std::size_t /*bytes*/,
                  std::size_t /*alignment*/ = kAlignment) noexcept {
    memory_->Free(data, stream.get());
  }
  // Allocates memory for immediate use on any stream: waits for the default
  // stream.
  void* allocate_sync(std::size_t bytes, std::size_t alignment = kAlignment) {
    return memory_->AllocateNow(bytes, alignment);
  }
  // Frees `data`. Every use must be complete.
  void deallocate_sync(void* data, std::size_t /*bytes*/,
                       std::size_t /*alignment*/ = kAlignment) noexcept {
    memory_->FreeNow(data);
  }

  // Names of CCCL 3.0.
  void* allocate(std::size_t bytes, std::size_t alignment = kAlignment) {
    return allocate_sync(bytes, alignment);
  }
  void deallocate(void* data, std::size_t bytes,
                  std::size_t alignment = kAlignment) noexcept {
    deallocate_sync(data, bytes, alignment);
  }
  void* allocate_async(std::size_t bytes, std::size_t alignment,
                       cuda::stream_ref stream) {
    return allocate(stream, bytes, alignment);
  }
  void* allocate_async(std::size_t bytes, cuda::stream_ref stream) {
    return allocate(stream, bytes);
  }
  void deallocate_async(void* data, std::size_t bytes, std::size_t alignment,
                        cuda::stream_ref stream) noexcept {
    deallocate(stream, data, bytes, alignment);
  }
  void deallocate_async(void* data, std::size_t bytes,
                        cuda::stream_ref stream) noexcept {
    deallocate(stream, data, bytes);
  }

  friend bool operator==(const device_resource& a, const device_resource& b) {
    return a.memory_ == b.memory_;
  }
  friend void get_property(const device_resource&,
                           cuda::mr::device_accessible) noexcept {}

 private:
  // Alignment of the driver and of RMM, in bytes.
  static constexpr std::size_t kAlignment = 256;

  std::shared_ptr<PlainMemory> memory_;
};

#if CCCL_VERSION >= 3001000
static_assert(
    cuda::mr::resource_with<device_resource, cuda::mr::device_accessible>);
#else
static_assert(cuda::mr::async_resource_with<device_resource,
                                            cuda::mr::device_accessible>);
#endif

}  // namespace strata::mr

#endif  // STRATA_BINDINGS_ADAPTERS_CUDA_MR_H_
