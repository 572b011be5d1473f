#ifndef STRATA_TESTS_TESTING_LAYERS_HANDLE_ALLOCATOR_H_
#define STRATA_TESTS_TESTING_LAYERS_HANDLE_ALLOCATOR_H_

#include <atomic>
#include <cstddef>

#include "strata/allocation/system/system_allocator.h"

namespace strata {

// A system that returns numbers, from 1, instead of addresses.
class HandleAllocator final : public SystemAllocator {
 public:
  HandleAllocator() : SystemAllocator(DevicePlace(0), 256) {}

  int live() const { return live_; }

  const char* name() const override { return "handles"; }
  bool returns_handles() const override { return true; }

 protected:
  void* Obtain(const Request& /*request*/,
               Failure& /*failure*/) noexcept override {
    ++live_;
    return reinterpret_cast<void*>(std::size_t{++last_});
  }
  Status Return(void* /*data*/, std::size_t /*bytes*/) noexcept override {
    --live_;
    return Status::kSuccess;
  }

 private:
  std::atomic<std::size_t> last_{0};
  std::atomic<int> live_{0};
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_LAYERS_HANDLE_ALLOCATOR_H_
