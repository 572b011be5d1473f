#include "strata/allocation/observe_allocator.h"

#include <cstdint>
#include <utility>

#include "strata/allocation/registry.h"

namespace strata {

ObserveAllocator::ObserveAllocator(std::shared_ptr<Allocator> underlying,
                                   Device& device, Stream stream)
    : Decorator(std::move(underlying)),
      device_(device),
      chain_stream_(stream),
      has_addresses_(!returns_handles()) {}

void ObserveAllocator::NoteHost(DeviceCall event) noexcept {
  device_.Note(RecordOf(event));
}

void ObserveAllocator::NoteBlock(DeviceCall event, const Allocation& allocation,
                                 Stream stream) noexcept {
  if (!has_addresses_) return;
  CallRecord record =
      RecordOf(event, reinterpret_cast<std::uintptr_t>(allocation.data()),
               allocation.size());
  record.stream_uid = stream.uid;
  device_.Note(record);
}

Allocation* ObserveAllocator::TryAllocate(const Request& request,
                                          Failure& failure) noexcept {
  NoteHost(DeviceCall::kHostAcquire);
  Allocation* allocation = underlying()->TryAllocate(request, failure);
  if (allocation != nullptr) {
    NoteBlock(DeviceCall::kBlockAlloc, *allocation, chain_stream_);
  }
  NoteHost(DeviceCall::kHostRelease);
  return allocation;
}

void ObserveAllocator::DoFree(Allocation* allocation) noexcept {
  NoteBlock(DeviceCall::kBlockFree, *allocation, chain_stream_);
  NoteHost(DeviceCall::kHostAcquire);
  underlying()->DoFree(allocation);
  NoteHost(DeviceCall::kHostRelease);
}

std::size_t ObserveAllocator::Release() noexcept {
  NoteHost(DeviceCall::kHostAcquire);
  const std::size_t released = underlying()->Release();
  NoteHost(DeviceCall::kHostRelease);
  return released;
}

bool ObserveAllocator::RecordStream(Allocation* allocation,
                                    Stream stream) noexcept {
  if (stream.uid != chain_stream_.uid) {
    NoteBlock(DeviceCall::kBlockMark, *allocation, stream);
  }
  return underlying()->RecordStream(allocation, stream);
}

std::shared_ptr<Allocator> MakeObserveAllocator(
    std::shared_ptr<Allocator> underlying, const DecoratorOptions& options,
    const ChainContext& context) {
  const int ordinal = context.place.index;
  if (context.platform == nullptr ||
      underlying->place().kind == PlaceKind::kHost ||
      ordinal >= context.platform->device_count()) {
    return underlying;
  }
  Device& device = context.platform->device(ordinal);
  if (!options.observe_blocks && !device.observed_for_life()) return underlying;
  const Stream stream = context.stream != nullptr ? context.stream->stream()
                                                  : underlying->stream();
  return std::make_shared<ObserveAllocator>(std::move(underlying), device,
                                            stream);
}

}  // namespace strata
