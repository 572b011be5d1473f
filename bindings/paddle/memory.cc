#include "strata/bindings/paddle/memory.h"

#include <stdexcept>

namespace strata::memory {
namespace {

AllocatorFacade& Facade() { return AllocatorFacade::Instance(); }

Allocation& Checked(const std::shared_ptr<Allocation>& allocation) {
  if (allocation == nullptr) {
    throw std::invalid_argument("the allocation is null");
  }
  return *allocation;
}

}  // namespace

AllocationPtr Alloc(Place place, std::size_t bytes) {
  return Facade().Alloc(place, bytes);
}
AllocationPtr Alloc(Place place, std::size_t bytes, Stream stream) {
  return Facade().Alloc(place, bytes, stream);
}
std::shared_ptr<Allocation> AllocShared(Place place, std::size_t bytes) {
  return Facade().AllocShared(place, bytes);
}
std::shared_ptr<Allocation> AllocShared(Place place, std::size_t bytes,
                                        Stream stream) {
  return Facade().AllocShared(place, bytes, stream);
}

std::size_t Release(Place place) { return Facade().Release(place); }
std::size_t Release(Place place, Stream stream) {
  return Facade().Release(place, stream);
}
std::size_t EmptyCache() { return Facade().EmptyCache(); }
std::size_t Compact(Place place) { return Facade().Compact(place); }

bool RecordStream(const std::shared_ptr<Allocation>& allocation,
                  Stream stream) {
  return Facade().RecordStream(Checked(allocation), stream);
}
void EraseStream(const std::shared_ptr<Allocation>& allocation, Stream stream) {
  Facade().EraseStream(Checked(allocation), stream);
}
Stream GetStream(const std::shared_ptr<Allocation>& allocation) {
  return Facade().GetStream(Checked(allocation));
}
bool InSameStream(const std::shared_ptr<Allocation>& allocation,
                  Stream stream) {
  return Facade().InSameStream(Checked(allocation), stream);
}
void* GetBasePtr(const std::shared_ptr<Allocation>& allocation) {
  return Facade().GetBasePtr(Checked(allocation));
}

}  // namespace strata::memory
