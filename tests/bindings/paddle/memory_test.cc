#include "strata/bindings/paddle/memory.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <memory>
#include <stdexcept>

#include "strata/tests/facade/facade_fixture.h"

namespace strata {
namespace {

// The functions on the facade of the process. They run in a separate process,
// because a process has only one such facade.

int failed_checks = 0;
void Check(bool holds, const char* what) {
  if (holds) return;
  std::cerr << "not so: " << what << '\n';
  ++failed_checks;
}

void UseEveryFunction() {
  AllocatorFacade& facade = AllocatorFacade::InitInstance(
      Options::Parse("strata_platform=sim,strata_sim_memory=64MiB"));
  Device& device = facade.platform().device(0);
  Stream stream;
  Check(device.StreamCreate(&stream, kStreamNonBlocking) == Status::kSuccess,
        "there is a stream");
  const Place place = DevicePlace(0);

  const auto shared = memory::AllocShared(place, 1000, stream);
  Check(memory::GetStream(shared) == stream, "GetStream is the stream asked");
  Check(memory::InSameStream(shared, stream), "InSameStream");
  Check(!memory::InSameStream(shared, device.LegacyStream()),
        "not InSameStream");
  Check(memory::GetBasePtr(shared) == shared->base(), "GetBasePtr is base");
  Check(memory::RecordStream(shared, device.LegacyStream()), "RecordStream");
  memory::EraseStream(shared, device.LegacyStream());
  Check(memory::Alloc(place, 10, stream)->data() != nullptr, "Alloc");
  Check(memory::Alloc(place, 10)->owner() == &facade.GetAllocator(place),
        "Alloc uses the default stream");
  Check(memory::AllocShared(place, 10)->owner() == &facade.GetAllocator(place),
        "AllocShared uses the default stream");
  // paddle.md §3.2-1: memory of 0 bytes has no effects.
  const auto zero = memory::AllocShared(place, 0, stream);
  Check(zero->data() == nullptr && zero->place() == place, "0 bytes");
  Check(!memory::RecordStream(zero, stream), "0 bytes are not recorded");
  Check(memory::Release(place, stream) == 0, "a live chunk stays");
  Check(memory::Release(place) != 0, "Release gives back idle chunks");
  Check(memory::EmptyCache() == 0, "nothing is left for EmptyCache");
  try {
    memory::Compact(place);
    Check(false, "Compact is refused");
  } catch (const std::logic_error&) {
  }
  try {
    memory::GetStream(nullptr);
    Check(false, "null is refused");
  } catch (const std::invalid_argument&) {
  }
}

TEST(MemoryDeathTest, FunctionsAreThoseOfTheInstance) {
  EXPECT_EXIT(
      {
        UseEveryFunction();
        std::exit(failed_checks);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace strata
