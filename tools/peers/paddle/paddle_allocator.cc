#include "strata/tools/peers/paddle/paddle_allocator.h"

namespace strata::peers {

PaddleAllocationPtr PaddleAllocator::Allocate(std::size_t bytes) {
  PaddleAllocation* allocation = AllocateImpl(bytes);
  allocation->layers_[allocation->layer_count_++] = this;
  return PaddleAllocationPtr(allocation, Delete);
}

void PaddleAllocator::Free(PaddleAllocation* allocation) {
  --allocation->layer_count_;
  FreeImpl(allocation);
}

void PaddleAllocator::Delete(PaddleAllocation* allocation) {
  allocation->layers_[allocation->layer_count_ - 1]->Free(allocation);
}

}  // namespace strata::peers
