// A module with the static library in it, as a plug-in links it.

#include "strata/facade/allocator_facade.h"

extern "C" __attribute__((visibility("default"))) int UseStrata() {
  strata::AllocatorFacade facade(strata::Options::Parse("strata_platform=sim"));
  const auto block = facade.Alloc(strata::DevicePlace(0), 1000);
  return block->data() != nullptr ? 0 : 1;
}
