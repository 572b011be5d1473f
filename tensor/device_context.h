#ifndef STRATA_TENSOR_DEVICE_CONTEXT_H_
#define STRATA_TENSOR_DEVICE_CONTEXT_H_

#include <cstddef>

#include "strata/allocation/attributes.h"
#include "strata/facade/allocator_facade.h"
#include "strata/tensor/dense_tensor.h"

namespace strata {

// The place and stream of a kernel, and the allocators for its tensors: one
// place and stream of a facade, and the host memory beside it.
//
// Model: Alloc() provides memory at the place of the context, or at its pinned
//   place. HostAlloc() provides host memory. Existing memory of a tensor is
//   kept if it is at the right place and large enough. If it belongs to another
//   stream, a mark records this stream as a user. Memory does not show its
//   platform. So remove memory of another platform (ResetHolder()) before
//   passing a tensor.
// Errors: as AllocatorFacade::Alloc(); a failed call does not change the
//   tensor.
// Threads: any thread, each with its own tensors.
// Lifetime: the facade must outlive the context. Tensors may outlive both.
//   Every call looks up the chain of the context. After the stream has ended,
//   the facade decides how to serve it.
// Source: PaddlePaddle's phi::DeviceContext.
class DeviceContext {
 public:
  // `stream` must belong to the device of the place. Device places need one,
  // such as GetDefaultStream() of the facade; host places ignore it.
  //
  // Errors: std::invalid_argument for a place or stream that does not exist.
  DeviceContext(AllocatorFacade& facade, Place place, Stream stream = Stream());

  Place place() const { return place_; }
  Stream stream() const { return stream_; }

  // The allocators live as long as those of the facade: see
  // AllocatorFacade::GetAllocator().
  Allocator& GetAllocator() const;
  Allocator& GetHostAllocator() const;
  // Errors: std::invalid_argument if the device has no pinned memory.
  Allocator& GetPinnedAllocator() const;
  Allocator& GetZeroAllocator() const;
  Allocator& GetHostZeroAllocator() const;

  // The place whose memory satisfies `attributes`: the place of the context,
  // unless they require host memory. Then it is pinned memory if a GPU or a
  // network card will use it, because pageable memory does not serve them.
  Place PlaceFor(const AllocatorAttributes& attributes) const;
  // Errors: std::invalid_argument if there is no such memory.
  Allocator& GetAllocator(const AllocatorAttributes& attributes) const;

  // See DenseTensor::AllocateFrom(). The zero allocator serves a fake
  // allocation, and ignores `requested_bytes`. It also serves a tensor without
  // elements, unless `requested_bytes` is larger.
  void* Alloc(DenseTensor& tensor, DataType dtype,
              std::size_t requested_bytes = 0, bool pinned = false,
              bool fake_alloc = false) const;
  void* HostAlloc(DenseTensor& tensor, DataType dtype,
                  std::size_t requested_bytes = 0,
                  bool fake_alloc = false) const;
  template <class T>
  T* Alloc(DenseTensor& tensor, std::size_t requested_bytes = 0,
           bool pinned = false, bool fake_alloc = false) const {
    static_assert(kDataTypeOf<T> != DataType::kUndefined);
    return static_cast<T*>(
        Alloc(tensor, kDataTypeOf<T>, requested_bytes, pinned, fake_alloc));
  }
  template <class T>
  T* HostAlloc(DenseTensor& tensor, std::size_t requested_bytes = 0,
               bool fake_alloc = false) const {
    static_assert(kDataTypeOf<T> != DataType::kUndefined);
    return static_cast<T*>(
        HostAlloc(tensor, kDataTypeOf<T>, requested_bytes, fake_alloc));
  }

 private:
  // The chain of `place`: the place of the context, or a host place beside it.
  Allocator& AllocatorAt(Place place) const;
  void* AllocateAt(Place place, DenseTensor& tensor, DataType dtype,
                   std::size_t requested_bytes, bool fake_alloc) const;

  AllocatorFacade& facade_;
  const Place place_;
  const Stream stream_;
};

}  // namespace strata

#endif  // STRATA_TENSOR_DEVICE_CONTEXT_H_
