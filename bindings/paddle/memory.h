#ifndef STRATA_BINDINGS_PADDLE_MEMORY_H_
#define STRATA_BINDINGS_PADDLE_MEMORY_H_

#include <cstddef>
#include <memory>

#include "strata/facade/allocator_facade.h"

namespace strata::memory {

// The functions of AllocatorFacade::Instance() with the names and arguments of
// PaddlePaddle.
//
// Errors: as the facade's functions of the same name; std::invalid_argument for
//   an allocation that is null.

AllocationPtr Alloc(Place place, std::size_t bytes);
AllocationPtr Alloc(Place place, std::size_t bytes, Stream stream);
std::shared_ptr<Allocation> AllocShared(Place place, std::size_t bytes);
std::shared_ptr<Allocation> AllocShared(Place place, std::size_t bytes,
                                        Stream stream);

std::size_t Release(Place place);
std::size_t Release(Place place, Stream stream);
std::size_t EmptyCache();
std::size_t Compact(Place place);

bool RecordStream(const std::shared_ptr<Allocation>& allocation, Stream stream);
void EraseStream(const std::shared_ptr<Allocation>& allocation, Stream stream);
Stream GetStream(const std::shared_ptr<Allocation>& allocation);
bool InSameStream(const std::shared_ptr<Allocation>& allocation, Stream stream);
void* GetBasePtr(const std::shared_ptr<Allocation>& allocation);

}  // namespace strata::memory

#endif  // STRATA_BINDINGS_PADDLE_MEMORY_H_
