#ifndef STRATA_TESTS_ALLOCATION_GUARD_GUARD_FIXTURE_H_
#define STRATA_TESTS_ALLOCATION_GUARD_GUARD_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "strata/allocation/guard/guard_allocator.h"
#include "strata/base/size.h"
#include "strata/tests/testing/layers/counting_allocator.h"
#include "strata/tests/testing/layers/pool_place.h"

namespace strata {

struct GuardedOptions {
  PlaceKind kind = PlaceKind::kDevice;
  std::string progress = "inline";
  std::string data = "backed";
  std::size_t red_zone_bytes = 256;
  std::size_t quarantine_bytes = Mebibytes(1);
  bool poison = true;
  std::string fill = "pattern";
  bool log = true;  // logs errors; otherwise ends the process
};

// A Guard layer over the pool of a place with stored bytes, and all errors that
// it reports.
class Guarded {
 public:
  explicit Guarded(const GuardedOptions& options = GuardedOptions())
      : place(PlaceOptions(options)),
        below(std::make_shared<CountingAllocator>(place.pool())),
        stream(place.NewChainStream()),
        reporter(services->Get<GuardReporter>(!options.log)) {
    reporter->AddCallback([this](const GuardError& error) {
      EXPECT_EQ(HeldLocks(), 0);
      errors.push_back(error);
    });
    guard = MakeLayer(options, stream);
  }

  // A further chain of the place.
  std::shared_ptr<GuardAllocator> MakeLayer(
      const GuardedOptions& options,
      const std::shared_ptr<ChainStream>& chain_stream) {
    DecoratorOptions decorators;
    decorators.guard_red_zone_bytes = options.red_zone_bytes;
    decorators.guard_quarantine_bytes = options.quarantine_bytes;
    decorators.guard_poison = options.poison;
    decorators.guard_fill = options.fill;
    ChainContext context;
    context.platform = place.platform();
    context.stream = chain_stream;
    context.reclaimer = place.reclaimer();
    context.place_services = services;
    return std::make_shared<GuardAllocator>(
        below, GuardSettings::From(decorators), context);
  }

  SimDevice& device() const { return place.device(); }
  bool on_host() const {
    return below->place().kind == PlaceKind::kHost ||
           below->place().kind == PlaceKind::kPinned;
  }

  // Writes one byte as the program would, ordered in the stream `on`.
  void Write(std::uintptr_t address, int value, Stream on) {
    if (on_host()) {
      std::memset(reinterpret_cast<void*>(address), value, 1);
    } else {
      EXPECT_EQ(device().MemsetAsync(address, value, 1, on), Status::kSuccess);
    }
  }
  void Write(std::uintptr_t address, int value) {
    Write(address, value, stream->stream());
  }
  // The bytes that the program sees after the chain's work completes.
  std::vector<unsigned char> Read(std::uintptr_t address, std::size_t bytes) {
    std::vector<unsigned char> copy(bytes);
    EXPECT_EQ(stream->Synchronize(), Status::kSuccess);
    const void* view = below->place().kind == PlaceKind::kDevice
                           ? device().HostView(address, bytes)
                           : reinterpret_cast<const void*>(address);
    if (view == nullptr) {
      ADD_FAILURE() << "the memory keeps no bytes";
    } else {
      std::memcpy(copy.data(), view, bytes);
    }
    return copy;
  }
  // Empties the quarantine.
  void Flush() { guard->Release(); }

  PoolPlace place;
  std::shared_ptr<CountingAllocator> below;
  std::shared_ptr<ChainStream> stream;
  std::vector<GuardError> errors;
  std::shared_ptr<SharedServices> services = std::make_shared<SharedServices>();
  std::shared_ptr<GuardReporter> reporter;
  std::shared_ptr<GuardAllocator> guard;

 private:
  static PoolPlaceOptions PlaceOptions(const GuardedOptions& options) {
    PoolPlaceOptions result;
    result.kind = options.kind;
    result.progress = options.progress;
    result.data = options.data;
    result.memory_bytes = Mebibytes(32);
    return result;
  }
};

inline std::uintptr_t AddressOf(const AllocationPtr& allocation) {
  return reinterpret_cast<std::uintptr_t>(allocation->data());
}

}  // namespace strata

#endif  // STRATA_TESTS_ALLOCATION_GUARD_GUARD_FIXTURE_H_
