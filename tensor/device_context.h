#ifndef STRATA_TENSOR_DEVICE_CONTEXT_H_
#define STRATA_TENSOR_DEVICE_CONTEXT_H_

#include <cstddef>

#include "strata/allocation/attributes.h"
#include "strata/facade/allocator_facade.h"
#include "strata/tensor/dense_tensor.h"

namespace strata {

// Where a kernel runs, and where the memory of its tensors comes from: one
// place and stream of a facade, and the host memory beside it.
//
// Model: Alloc gives a tensor memory at the context's place, or at its pinned
//   place; HostAlloc gives it host memory. Memory that a tensor has already is
//   kept if it is at the right place and large enough. If it belongs to another
//   stream, this one is marked as a user of it. Memory does not tell which
//   platform it is of: take that of another one away (ResetHolder) before a
//   tensor comes here.
// Errors: as AllocatorFacade::Alloc; a failed call leaves the tensor alone.
// Threads: any thread, each with tensors of its own.
// Lifetime: the facade outlives the context. Tensors may outlive both. The
//   context looks its chain up in every call: once the stream has ended it is
//   served as the facade serves that stream.
// Source: PaddlePaddle's phi::DeviceContext.
class DeviceContext {
 public:
  // `stream` is of the place's device, which needs one, such as the facade's
  // GetDefaultStream; for host places it means nothing.
  //
  // Errors: std::invalid_argument for a place or stream that does not exist.
  DeviceContext(AllocatorFacade& facade, Place place, Stream stream = Stream());

  Place place() const { return place_; }
  Stream stream() const { return stream_; }

  // They live as long as the facade's: see AllocatorFacade::GetAllocator.
  Allocator& GetAllocator() const;
  Allocator& GetHostAllocator() const;
  // Errors: std::invalid_argument if the device has no pinned memory.
  Allocator& GetPinnedAllocator() const;
  Allocator& GetZeroAllocator() const;
  Allocator& GetHostZeroAllocator() const;

  // The place whose memory satisfies `attributes`: the context's, unless they
  // ask for the host; then pinned memory if a GPU or a network card is to use
  // it, which pageable memory is no use for.
  Place PlaceFor(const AllocatorAttributes& attributes) const;
  // Errors: std::invalid_argument if there is no such memory.
  Allocator& GetAllocator(const AllocatorAttributes& attributes) const;

  // See DenseTensor::AllocateFrom. A fake allocation is served by the zero
  // allocator, whatever `requested_bytes` says; one for a tensor without
  // elements is unless `requested_bytes` asks for more.
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
  // The chain of the context's place, or of one beside it.
  Allocator& AllocatorAt(Place place) const;
  void* AllocateAt(Place place, DenseTensor& tensor, DataType dtype,
                   std::size_t requested_bytes, bool fake_alloc) const;

  AllocatorFacade& facade_;
  const Place place_;
  const Stream stream_;
};

}  // namespace strata

#endif  // STRATA_TENSOR_DEVICE_CONTEXT_H_
