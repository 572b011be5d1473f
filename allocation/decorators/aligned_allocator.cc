#include "strata/allocation/decorators/aligned_allocator.h"

#include <optional>
#include <utility>

#include "strata/allocation/block_flags.h"
#include "strata/allocation/decorators/registry.h"
#include "strata/base/size.h"

namespace strata {

static_assert(kMaxAlignment / Block::kOffsetUnitBytes - 1 <= UINT16_MAX,
              "every offset fits the record");

AlignedAllocator::AlignedAllocator(std::shared_ptr<Allocator> underlying)
    : Decorator(std::move(underlying)) {}

Allocation* AlignedAllocator::TryAllocate(const Request& request,
                                          Failure& failure) noexcept {
  // A handle must be all of the block, and is aligned by itself.
  if (request.alignment <= underlying()->max_alignment() ||
      (request.flags & kOneHandle) != 0) {
    return underlying()->TryAllocate(request, failure);
  }
  const std::optional<std::size_t> padded = CheckedAdd(
      request.bytes, request.alignment - underlying()->natural_alignment());
  if (!padded || request.alignment > kMaxAlignment) {
    failure = Refusal(
        padded ? Failure::Reason::kBadRequest : Failure::Reason::kTooLarge,
        request, "alignment");
    return nullptr;
  }
  Request larger = request;
  larger.bytes = *padded;
  larger.padding_bytes = *padded - request.bytes;
  larger.alignment = 0;
  Allocation* allocation = underlying()->TryAllocate(larger, failure);
  if (allocation == nullptr) {
    failure.requested_bytes = request.bytes;
    return nullptr;
  }
  Block* block = allocation->block();
  const auto address = reinterpret_cast<std::size_t>(block->data);
  const std::size_t offset = AlignUp(address, request.alignment) - address;
  if (offset != 0) SetOffset(*block, offset);
  block->requested = request.bytes;
  return allocation;
}

void AlignedAllocator::DoFree(Allocation* allocation) noexcept {
  Block* block = allocation->block();
  if (HasFlag(*block, kBlockOffset)) SetOffset(*block, 0);
  underlying()->DoFree(allocation);
}

std::shared_ptr<Allocator> MakeAlignedAllocator(
    std::shared_ptr<Allocator> underlying, const DecoratorOptions& options,
    const ChainContext& /*context*/) {
  if (!options.aligned) return underlying;
  return std::make_shared<AlignedAllocator>(std::move(underlying));
}

}  // namespace strata
