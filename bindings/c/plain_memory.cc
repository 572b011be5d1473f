#include "strata/bindings/c/plain_memory.h"

#include <exception>
#include <stdexcept>
#include <utility>

#include "strata/allocation/error.h"
#include "strata/base/log.h"
#include "strata/platform/device.h"

namespace strata {

PlainMemory::PlainMemory(std::shared_ptr<AllocatorFacade> facade, Place place)
    : facade_(std::move(facade)), place_(place) {
  if (facade_ == nullptr) {
    throw std::invalid_argument("PlainMemory: the facade is null");
  }
  facade_->GetAllocator(place_);  // throws if there is no such place
  if (place_.kind != PlaceKind::kDevice && place_.kind != PlaceKind::kManaged) {
    throw std::invalid_argument("PlainMemory: memory of " + ToString(place_) +
                                " belongs to no stream");
  }
}

void* PlainMemory::Allocate(std::size_t bytes, std::size_t alignment,
                            void* stream) {
  return pointers_.Insert(
      facade_->Alloc(place_, Request{bytes, alignment}, stream));
}

void* PlainMemory::AllocateNow(std::size_t bytes, std::size_t alignment) {
  const Stream stream = facade_->GetDefaultStream(place_);
  AllocationPtr allocation =
      facade_->Alloc(place_, Request{bytes, alignment}, stream);
  // Work of the stream may still use the memory for its former owner.
  const Status status =
      facade_->platform().device(stream.device).StreamSynchronize(stream);
  if (status != Status::kSuccess) {
    throw DeviceError(
        "cannot wait for the default stream of " + ToString(place_), status);
  }
  return pointers_.Insert(std::move(allocation));
}

AllocationPtr PlainMemory::Take(void* data) noexcept {
  if (data == nullptr) return nullptr;
  AllocationPtr taken = pointers_.Take(data);
  STRATA_LOG_IF(Error, taken == nullptr)
      << ToString(place_) << ": " << data
      << " is not allocated: freed already, or not from this resource";
  return taken;
}

void PlainMemory::Free(void* data, void* stream) noexcept {
  AllocationPtr taken = Take(data);
  if (taken == nullptr) return;
  Allocator& owner = *taken->owner();
  const Stream own = owner.stream();
  if (stream == own.handle) return;
  try {
    const Stream last = facade_->Wrap(stream, own.device);
    owner.Free(std::move(taken), last);
  } catch (const std::exception& error) {
    STRATA_LOG(Error)
        << "PlainMemory: memory is freed on a stream that is none; "
           "waiting for the device: "
        << error.what();
    facade_->platform().device(own.device).Synchronize();
  }
}

void PlainMemory::FreeNow(void* data) noexcept { Take(data); }

}  // namespace strata
