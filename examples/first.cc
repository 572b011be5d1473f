// The smallest program: a block of device memory, and a message for each error.
//
// usage: first [any flag of `strata info`]

#include <cstdio>
#include <exception>

#include "strata/facade/allocator_facade.h"
#include "strata/facade/flags.h"

int main(int argc, char** argv) try {
  strata::ParseCommandLine({argv + 1, argv + argc});
  strata::AllocatorFacade facade(strata::OptionsFromFlags());
  strata::AllocationPtr block = facade.Alloc(strata::DevicePlace(0), 1 << 20);
  std::printf("%zu bytes at %p\n", block->size(), block->data());
  return 0;  // the block is freed here
} catch (const std::exception& error) {
  std::fprintf(stderr, "first: %s\n", error.what());
  return 1;
}
