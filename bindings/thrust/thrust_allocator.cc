#include "strata/bindings/thrust/thrust_allocator.h"

#include <stdexcept>
#include <string>

#include "strata/base/log.h"

namespace strata {

char* ThrustAllocator::allocate(std::ptrdiff_t bytes) {
  if (bytes < 0) {
    throw std::invalid_argument("ThrustAllocator: " + std::to_string(bytes) +
                                " bytes");
  }
  if (bytes == 0) return nullptr;
  return static_cast<char*>(pointers_.Insert(
      facade_.Alloc(place_, static_cast<std::size_t>(bytes), stream_)));
}

void ThrustAllocator::deallocate(char* data, std::size_t /*bytes*/) noexcept {
  if (data == nullptr) return;
  const AllocationPtr freed = pointers_.Take(data);
  STRATA_LOG_IF(Error, freed == nullptr)
      << "ThrustAllocator: no live allocation starts at "
      << static_cast<void*>(data);
}

}  // namespace strata
