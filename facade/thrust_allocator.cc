#include "strata/facade/thrust_allocator.h"

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

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

void ThrustAllocator::deallocate(char* data, std::size_t /*bytes*/) {
  if (data == nullptr) return;
  AllocationPtr freed;  // outside the lock
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = live_.find(data);
  if (found == live_.end()) {
    throw std::invalid_argument(
        "ThrustAllocator: no live allocation starts at " +
        std::to_string(reinterpret_cast<std::uintptr_t>(data)));
  }
  freed = std::move(found->second);
  live_.erase(found);
}

}  // namespace strata
