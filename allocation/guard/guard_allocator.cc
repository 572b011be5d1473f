#include "strata/allocation/guard/guard_allocator.h"

#include <algorithm>
#include <array>
#include <limits>
#include <new>
#include <optional>
#include <utility>

#include "strata/allocation/block_flags.h"
#include "strata/allocation/decorators/registry.h"
#include "strata/allocation/streams/timeline_table.h"
#include "strata/base/log.h"
#include "strata/base/size.h"

namespace strata {
namespace {

const std::byte* Bytes(const void* data) {
  return static_cast<const std::byte*>(data);
}

// `settings` with zones that preserve the natural alignment of an address.
GuardSettings Rounded(GuardSettings settings, std::size_t alignment) {
  settings.red_zone_bytes = AlignUp(
      settings.red_zone_bytes, std::max(alignment, Block::kOffsetUnitBytes));
  return settings;
}

// Zones around and in a block, in address order.
struct Layout {
  Layout(const GuardRecord& record, const GuardSettings& settings,
         unsigned char contents) {
    const std::byte* end = record.data + record.bytes;
    const std::byte* limit =
        Bytes(record.memory->data()) + record.memory->size();
    front = {record.data - settings.red_zone_bytes, settings.red_zone_bytes,
             kGuardFrontByte};
    block = {record.data, record.bytes, contents};
    back = {end, static_cast<std::size_t>(limit - end), kGuardBackByte};
  }

  GuardZone front;
  GuardZone block;
  GuardZone back;
};

// Bytes held by the chunk pool at the bottom of a chain; 0 if there is none.
std::size_t ReservedBelow(Allocator* layer) {
  layer = FindLayer(layer, "chunk_pool");
  return layer != nullptr ? layer->stats().reserved_bytes : 0;
}

}  // namespace

GuardAllocator::GuardAllocator(std::shared_ptr<Allocator> underlying,
                               const GuardSettings& settings,
                               const ChainContext& context)
    : Decorator(std::move(underlying)),
      settings_(Rounded(settings, Decorator::natural_alignment())),
      memory_(Decorator::place(), context.platform, context.stream,
              context.Find<TimelineTable>(ServiceScope::kFacade)),
      reporter_(context.Shared<GuardReporter>(ServiceScope::kPlace,
                                              settings.abort_on_error)) {
  if (context.reclaimer != nullptr) {
    registration_ = Reclaimer::Register(context.reclaimer,
                                        Reclaimer::Step::kDrainFrees, *this);
  }
}

GuardAllocator::~GuardAllocator() {
  registration_.Reset();
  Drain(0);
}

Allocation* GuardAllocator::TryAllocate(const Request& request,
                                        Failure& failure) noexcept {
  const auto refuse = [&](Failure::Reason reason, const char* detail) {
    failure = Refusal(reason, request, detail);
    ledger_.CountFailure();
    return nullptr;
  };
  // A handle is not memory: there are no zones around it.
  const std::size_t zone_bytes =
      returns_handles() ? 0 : settings_.red_zone_bytes;
  const std::size_t front_bytes =
      AlignUp(zone_bytes, std::max<std::size_t>(request.alignment, 1));
  const std::optional<std::size_t> padded_bytes =
      CheckedAdd(request.bytes, front_bytes + zone_bytes);
  if (!padded_bytes) return refuse(Failure::Reason::kTooLarge, "red zones");
  GuardRecord* record = ledger_.Take();
  if (record == nullptr) return refuse(Failure::Reason::kHostMemory, "record");
  Request padded = request;
  padded.bytes = *padded_bytes;
  Allocation* memory = TakeMemory(padded, failure);
  if (memory == nullptr) {
    failure.requested_bytes = request.bytes;
    ledger_.CountFailure();
    ledger_.Give(record);
    return nullptr;
  }
  Lay(*record, memory, front_bytes, request.bytes);
  record->allocated.Write();
  record->zoned = !returns_handles() && WriteZones(*record);
  ledger_.AddLive(record);
  return record->block->allocation();
}

Allocation* GuardAllocator::TakeMemory(const Request& padded,
                                       Failure& failure) noexcept {
  Allocation* memory = underlying()->TryAllocate(padded, failure);
  if (memory != nullptr) return memory;
  // A request without reclaim steps must not fail for memory that only the
  // quarantine holds.
  const bool exhausted =
      failure.IsExhaustion() || failure.reason == Failure::Reason::kNoGrowth;
  if (!exhausted || Drain(0) == 0) return nullptr;
  return underlying()->TryAllocate(padded, failure);
}

void GuardAllocator::Lay(GuardRecord& record, Allocation* memory,
                         std::size_t front_bytes,
                         std::size_t bytes) const noexcept {
  auto* start = static_cast<std::byte*>(memory->data());
  record.memory = memory;
  record.data = start + front_bytes;
  record.bytes = bytes;
  Block& block = *record.block;
  block.flags = kBlockLive;
  block.set_place(memory->place());
  block.chunk = memory->block()->chunk;
  block.requested = bytes;
  block.guard = &record;
  block.data = record.data;
  // Without a chunk, base() is the start of the block's data.
  std::byte* base = memory->block()->data;
  const auto offset = static_cast<std::size_t>(record.data - base);
  if (block.chunk == nullptr && offset % Block::kOffsetUnitBytes == 0 &&
      offset / Block::kOffsetUnitBytes <=
          std::numeric_limits<std::uint16_t>::max()) {
    block.data = base;
    SetOffset(block, offset);
  }
  block.size = bytes + block.offset_bytes();
}

bool GuardAllocator::Did(Status status, const char* what) noexcept {
  if (status == Status::kSuccess) return true;
  reporter_->NoteSkipped(place(), what, status);
  return false;
}

bool GuardAllocator::WriteZones(const GuardRecord& record) noexcept {
  if (!memory_.readable()) reporter_->NoteUnreadable(place());
  const Layout layout(record, settings_, settings_.fresh_byte);
  return (!settings_.poison ||
          Did(memory_.Fill(layout.block), "fill a new block")) &&
         Did(memory_.Fill(layout.front), "write a red zone") &&
         Did(memory_.Fill(layout.back), "write a red zone");
}

bool GuardAllocator::OrderAfterMarks(const GuardRecord& record) noexcept {
  Stream stream;
  for (std::size_t i = 0; ledger_.MarkAt(record, i, &stream); ++i) {
    if (!Did(memory_.OrderAfterKnown(stream), "wait for a stream")) {
      return false;
    }
  }
  return true;
}

bool GuardAllocator::Poison(const GuardRecord& record) noexcept {
  if (!settings_.poison || !record.zoned) return false;
  const Layout layout(record, settings_, settings_.freed_byte);
  return Did(memory_.Fill(layout.block), "fill a freed block");
}

void GuardAllocator::DoFree(Allocation* allocation) noexcept {
  Block* block = allocation->block();
  GuardRecord& record = *block->guard;
  if (!ledger_.BeginFree(record)) {
    GuardError error;
    error.kind = GuardError::Kind::kDoubleFree;
    Report(record, /*freed=*/true, std::move(error));
    return;
  }
  // The record stays live and a second free is detected here, because the
  // layers above have finished with the block.
  block->owner = this;
  // The layers below must see now which graphs may use the block. The guard
  // cannot order itself after the uses of a graph.
  if (memory_.IsCapturing() || ledger_.IsOfGraph(record)) {
    ledger_.BeginDrop(record);
    underlying()->DoFree(record.memory);
    ledger_.EndDrop(record);
    return;
  }
  record.ordered = OrderAfterMarks(record);
  record.poisoned = record.ordered && Poison(record);
  const std::size_t bytes = record.memory->size();
  ledger_.Quarantine(record);
  // A waiting request empties the quarantine when it tries again.
  if (reclaimer() != nullptr) reclaimer()->retry().NotifyFree(bytes);
  DrainAboveLimit();
}

std::size_t GuardAllocator::Drain(std::size_t keep_bytes) noexcept {
  std::size_t bytes = 0;
  MemoryCheck ignored;
  while (GuardRecord* record = ledger_.TakeOldest(keep_bytes)) {
    Check(*record, GuardRecord::State::kQuarantined, ignored);
    bytes += record->memory->size();
    underlying()->DoFree(record->memory);
    ledger_.Give(record);
  }
  return bytes;
}

void GuardAllocator::DrainAboveLimit() noexcept {
  const std::size_t limit = settings_.quarantine_bytes;
  if (ledger_.quarantine_bytes() <= limit) return;
  // A quarter at once: one wait for the stream serves all these blocks.
  Drain(limit - limit / 4);
}

void GuardAllocator::Check(const GuardRecord& record, GuardRecord::State state,
                           MemoryCheck& result) noexcept {
  const bool freed = state == GuardRecord::State::kQuarantined;
  if (state == GuardRecord::State::kDropped || !record.zoned ||
      !memory_.readable() ||
      (freed ? !record.ordered : !OrderAfterMarks(record))) {
    ++result.skipped;
    return;
  }
  const Layout layout(record, settings_, settings_.freed_byte);
  std::array<GuardZone, 3> zones = {layout.front, layout.back, {}};
  std::array<GuardError::Kind, 3> kinds = {GuardError::Kind::kUnderrun,
                                           GuardError::Kind::kOverrun,
                                           GuardError::Kind::kOverrun};
  std::size_t count = 2;
  // Without a quarantine the contents of a freed block are not checked.
  if (freed && record.poisoned && settings_.quarantine_bytes != 0) {
    zones = {layout.front, layout.block, layout.back};
    kinds[1] = GuardError::Kind::kUseAfterFree;
    count = 3;
  }
  std::array<GuardChange, 3> changes;
  if (!Did(memory_.Compare(zones.data(), count, changes.data()),
           "read a block")) {
    ++result.skipped;
    return;
  }
  ++result.checked;
  for (std::size_t i = 0; i < count; ++i) {
    if (changes[i].count == 0) continue;
    ++result.errors;
    // Restore the zone, so that the next change is reported again.
    Did(memory_.Fill(zones[i]), "write a red zone");
    GuardError error;
    error.kind = kinds[i];
    error.changed_bytes = changes[i].count;
    error.offset = zones[i].data - record.data +
                   static_cast<std::ptrdiff_t>(changes[i].first);
    error.found = changes[i].found;
    error.expected = zones[i].value;
    Report(record, freed, std::move(error));
  }
}

void GuardAllocator::Report(const GuardRecord& record, bool freed,
                            GuardError error) noexcept {
  error.place = place();
  error.data = record.data;
  error.bytes = record.bytes;
  try {
    error.allocated_by = record.allocated.ToString();
    if (freed) error.freed_by = record.freed.ToString();
  } catch (const std::bad_alloc&) {
    STRATA_LOG(Error) << "guard: no host memory to say whose block "
                      << error.data << " is";
  }
  reporter_->Report(error);
}

MemoryCheck GuardAllocator::CheckAll() noexcept {
  MemoryCheck result;
  for (GuardRecord* record = ledger_.PinNewest(); record != nullptr;
       record = ledger_.PinOlder(record)) {
    Check(*record, ledger_.StateOf(*record), result);
  }
  // Blocks freed during the check may have been pinned.
  DrainAboveLimit();
  return result;
}

std::size_t GuardAllocator::Release() noexcept {
  const std::size_t before = ReservedBelow(underlying());
  Drain(0);
  const std::size_t after = ReservedBelow(underlying());
  return before - std::min(before, after) + underlying()->Release();
}

GuardRecord* GuardAllocator::LiveRecord(const Allocation& allocation) noexcept {
  if ((allocation.block()->flags & kBlockZeroSize) != 0) return nullptr;
  GuardRecord* record = allocation.block()->guard;
  if (ledger_.StateOf(*record) == GuardRecord::State::kLive) return record;
  GuardError error;
  error.kind = GuardError::Kind::kUseAfterFree;
  Report(*record, /*freed=*/true, std::move(error));
  return nullptr;
}

bool GuardAllocator::BeginMark(Allocation* allocation, Stream stream) noexcept {
  GuardRecord* live = LiveRecord(*allocation);
  if (live == nullptr) return false;
  GuardRecord& record = *live;
  if (stream.uid != 0 && stream != memory_.stream()) {
    try {
      memory_.Know(stream);
      if (memory_.IsCapturing(stream)) ledger_.NoteGraph(record);
      ledger_.AddMark(record, stream);
    } catch (const std::bad_alloc&) {
      // No memory for the mark: wait for that use now.
      Did(memory_.OrderAfter(stream), "wait for a stream");
    }
  }
  return true;
}

bool GuardAllocator::RecordStream(Allocation* allocation,
                                  Stream stream) noexcept {
  return BeginMark(allocation, stream) &&
         underlying()->RecordStream(allocation->block()->guard->memory, stream);
}

bool GuardAllocator::RecordUse(Allocation* allocation, Stream stream,
                               Event event) noexcept {
  return BeginMark(allocation, stream) &&
         underlying()->RecordUse(allocation->block()->guard->memory, stream,
                                 event);
}

void GuardAllocator::EraseStream(Allocation* allocation,
                                 Stream stream) noexcept {
  GuardRecord* record = LiveRecord(*allocation);
  if (record == nullptr) return;
  ledger_.RemoveMark(*record, stream);
  underlying()->EraseStream(record->memory, stream);
}

void GuardAllocator::StreamDestroyed(Stream stream) noexcept {
  if (stream == memory_.stream()) {
    Drain(0);
  } else if (ledger_.AnyMark(stream)) {
    Did(memory_.OrderAfter(stream), "wait for a stream");
    ledger_.RemoveMarks(stream);
  }
  underlying()->StreamDestroyed(stream);
}

Stats GuardAllocator::stats() const {
  const Stats own = ledger_.stats();
  Stats stats = underlying()->stats();
  stats.allocations = own.allocations;
  stats.frees = own.frees;
  stats.failures = own.failures;
  stats.requested_bytes = own.requested_bytes;
  stats.total_requested_bytes = own.total_requested_bytes;
  stats.in_use_bytes = own.in_use_bytes;
  stats.peak_in_use_bytes = own.peak_in_use_bytes;
  return stats;
}

void GuardAllocator::ResetPeak() {
  ledger_.ResetPeak();
  underlying()->ResetPeak();
}

std::size_t GuardAllocator::ReclaimableBytes(bool /*of_limit*/) const noexcept {
  return ledger_.quarantine_bytes();
}

std::size_t GuardAllocator::Reclaim(Stream /*stream*/,
                                    std::size_t /*bytes*/) noexcept {
  return Drain(0);
}

GuardAllocator* FindGuard(Allocator* layer) {
  return static_cast<GuardAllocator*>(FindLayer(layer, "guard"));
}

std::shared_ptr<GuardReporter> GuardReporterOf(const DecoratorOptions& options,
                                               const ChainContext& context) {
  if (!options.guard) return nullptr;
  return context.Shared<GuardReporter>(
      ServiceScope::kPlace, GuardSettings::From(options).abort_on_error);
}

std::shared_ptr<Allocator> MakeGuardAllocator(
    std::shared_ptr<Allocator> underlying, const DecoratorOptions& options,
    const ChainContext& context) {
  if (!options.guard) return underlying;
  return std::make_shared<GuardAllocator>(
      std::move(underlying), GuardSettings::From(options), context);
}

}  // namespace strata
