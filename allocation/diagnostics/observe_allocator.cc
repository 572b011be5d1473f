#include "strata/allocation/diagnostics/observe_allocator.h"

#include <utility>

#include "strata/allocation/decorators/registry.h"

namespace strata {

ObserveAllocator::ObserveAllocator(std::shared_ptr<Allocator> underlying,
                                   std::shared_ptr<Platform> platform,
                                   int ordinal, Stream stream)
    : Decorator(std::move(underlying)),
      platform_(std::move(platform)),
      device_(platform_->device(ordinal)),
      chain_stream_(stream),
      has_addresses_(!returns_handles()) {}

void ObserveAllocator::NoteHost(DeviceCall event) noexcept {
  device_.Note(RecordOf(event));
}

void ObserveAllocator::NoteBlock(DeviceCall event, const Allocation& allocation,
                                 Stream stream, std::uint64_t value) noexcept {
  if (!has_addresses_) return;
  CallRecord record =
      RecordOf(event, reinterpret_cast<std::uintptr_t>(allocation.data()),
               allocation.size(), value);
  record.stream_uid = stream.uid;
  const bool is_known = platform_->HasDevice(stream.device);
  Device& teller = is_known ? platform_->device(stream.device) : device_;
  teller.Note(record);
}

Allocation* ObserveAllocator::TryAllocate(const Request& request,
                                          Failure& failure) noexcept {
  NoteHost(DeviceCall::kHostAcquire);
  Allocation* allocation = underlying()->TryAllocate(request, failure);
  if (allocation != nullptr) {
    // The memory may be a block that another thread freed during the call.
    NoteHost(DeviceCall::kHostAcquire);
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
  if (stream != chain_stream_) {
    NoteBlock(DeviceCall::kBlockMark, *allocation, stream);
  }
  return underlying()->RecordStream(allocation, stream);
}

bool ObserveAllocator::RecordUse(Allocation* allocation, Stream stream,
                                 Event event) noexcept {
  if (stream != chain_stream_) {
    NoteBlock(DeviceCall::kBlockMark, *allocation, stream,
              reinterpret_cast<std::uintptr_t>(event.value));
  }
  return underlying()->RecordUse(allocation, stream, event);
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
  const bool observed = context.platform->device(ordinal).observed_for_life();
  if (!options.observe_blocks && !observed) return underlying;
  const Stream stream = context.stream != nullptr ? context.stream->stream()
                                                  : underlying->stream();
  return std::make_shared<ObserveAllocator>(std::move(underlying),
                                            context.platform, ordinal, stream);
}

}  // namespace strata
