#include "strata/bindings/thrust/thrust_allocator.h"

#include <stdexcept>
#include <string>
#include <utility>

#include "strata/base/log.h"

namespace strata {

char* ThrustAllocator::allocate(std::ptrdiff_t bytes) {
  if (bytes < 0) {
    throw std::invalid_argument("ThrustAllocator: " + std::to_string(bytes) +
                                " bytes");
  }
  if (bytes == 0) return nullptr;
  AllocationPtr allocation =
      facade_.Alloc(place_, static_cast<std::size_t>(bytes), stream_);
  auto* data = static_cast<char*>(allocation->data());
  const std::lock_guard<std::mutex> guard(mutex_);
  live_.emplace(data, std::move(allocation));
  return data;
}

void ThrustAllocator::deallocate(char* data, std::size_t /*bytes*/) noexcept {
  if (data == nullptr) return;
  AllocationPtr freed;  // freed after the lock is released
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = live_.find(data);
    if (found != live_.end()) {
      freed = std::move(found->second);
      live_.erase(found);
    }
  }
  STRATA_LOG_IF(Error, freed == nullptr)
      << "ThrustAllocator: no live allocation starts at "
      << static_cast<void*>(data);
}

}  // namespace strata
