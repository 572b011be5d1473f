#include <gflags/gflags.h>

#include <cstddef>
#include <iostream>

#include "strata/facade/allocator_facade.h"
#include "strata/facade/flags.h"

int main(int argc, char** argv) {
  strata::RegisterFlags();
  gflags::ParseCommandLineFlags(&argc, &argv, true);
  strata::AllocatorFacade facade(strata::OptionsFromFlags());
  constexpr std::size_t kBytes = std::size_t{1} << 20;
  const auto allocation = facade.Alloc(strata::DevicePlace(0), kBytes);
  std::cout << facade.options().platform.platform << ": " << allocation->size()
            << " bytes at " << allocation->data() << '\n';
  return allocation->size() >= kBytes ? 0 : 1;
}
