#include "strata/allocation/diagnostics/events_allocator.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cstdio>
#include <new>
#include <utility>

#include "strata/allocation/decorators/registry.h"
#include "strata/allocation/diagnostics/annotation.h"
#include "strata/base/json_text.h"

namespace strata {
namespace {

// Small numbers for threads, in the order of their first event.
int ThreadNumber() {
  static std::atomic<int> last{0};
  thread_local const int number = ++last;
  return number;
}

// tf_bfc.md R51. -1 for a strategy that holds no free blocks.
double FragmentationOf(const Stats& stats) {
  const std::uint64_t free_bytes =
      stats.reserved_bytes - std::min(stats.reserved_bytes, stats.in_use_bytes);
  if (free_bytes == 0) return 0;
  if (stats.largest_free_bytes == 0) return -1;
  return static_cast<double>(free_bytes -
                             std::min(free_bytes, stats.largest_free_bytes)) /
         static_cast<double>(free_bytes);
}

}  // namespace

EventSink::EventSink(const std::string& path, const Clock& clock)
    : clock_(clock),
      process_(getpid()),
      file_("strata_trace_events_file", path) {
  std::fputc('[', file_.get());
}

EventSink::~EventSink() { std::fputs("\n]\n", file_.get()); }

EventSink::PlaceUse& EventSink::UseOf(Place place) {
  const auto found =
      std::find_if(uses_.begin(), uses_.end(),
                   [&](const PlaceUse& use) { return use.place == place; });
  if (found != uses_.end()) return *found;
  return uses_.emplace_back(PlaceUse{place, 0, 0});
}

void EventSink::Allocated(const Allocation& allocation,
                          const MemoryLevels& levels) noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  try {
    PlaceUse& use = UseOf(allocation.place());
    ids_.emplace(&allocation, next_id_);
    use.in_use_bytes += allocation.size();
    use.peak_bytes = std::max(use.peak_bytes, use.in_use_bytes);
    Write("MemoryAllocation", next_id_++, allocation, use, levels);
  } catch (const std::bad_alloc&) {
    file_.NoteLost();
  }
}

void EventSink::Freed(const Allocation& allocation,
                      const MemoryLevels& levels) noexcept {
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto found = ids_.find(&allocation);
  if (found == ids_.end()) {
    file_.NoteLost();
    return;
  }
  PlaceUse& use = UseOf(allocation.place());
  use.in_use_bytes -= allocation.size();
  Write("MemoryDeallocation", found->second, allocation, use, levels);
  ids_.erase(found);
}

void EventSink::Write(const char* name, std::uint64_t id,
                      const Allocation& allocation, const PlaceUse& use,
                      const MemoryLevels& levels) noexcept {
  const auto ns = static_cast<std::uint64_t>(clock_.Now().count());
  std::fprintf(file_.get(),
               "%s\n{\"name\":\"%s\",\"ph\":\"i\",\"s\":\"t\",\"ts\":%" PRIu64
               ".%03" PRIu64 ",\"pid\":%d,\"tid\":%d,\"args\":{",
               is_first_ ? "" : ",", name, ns / 1000, ns % 1000, process_,
               ThreadNumber());
  is_first_ = false;
  std::fprintf(file_.get(),
               "\"allocator_name\":\"%s\",\"place\":\"%s\",\"id\":%" PRIu64
               ",\"addr\":\"0x%" PRIxPTR
               "\",\"requested_bytes\":%zu,\"allocation_bytes\":%zu",
               levels.allocator_name, ToString(use.place).c_str(), id,
               reinterpret_cast<std::uintptr_t>(allocation.data()),
               allocation.requested_bytes(), allocation.size());
  std::fprintf(file_.get(),
               ",\"bytes_reserved\":%" PRIu64 ",\"bytes_allocated\":%" PRIu64
               ",\"peak_bytes_in_use\":%" PRIu64,
               levels.reserved_bytes, use.in_use_bytes, use.peak_bytes);
  if (levels.limit_bytes != 0) {
    std::fprintf(
        file_.get(), ",\"bytes_available\":%" PRIu64,
        levels.limit_bytes - std::min(levels.limit_bytes, use.in_use_bytes));
  }
  if (levels.fragmentation >= 0) {
    std::fprintf(file_.get(), ",\"fragmentation\":%.6f", levels.fragmentation);
  }
  WriteAnnotation();
  std::fputs("}}", file_.get());
  file_.EndEntry();
}

void EventSink::WriteAnnotation() noexcept {
  if (*AnnotationOp() != '\0') {
    std::fputs(",\"op\":", file_.get());
    WriteJsonString(file_.get(), AnnotationOp());
  }
  if (AnnotationStep() >= 0) {
    std::fprintf(file_.get(), ",\"step\":%" PRId64, AnnotationStep());
  }
}

EventsAllocator::EventsAllocator(std::shared_ptr<Allocator> underlying,
                                 std::shared_ptr<EventSink> sink)
    : Decorator(std::move(underlying)),
      sink_(std::move(sink)),
      strategy_(&CarvingLayer(*Decorator::underlying())),
      pool_(strategy_->underlying()) {}

MemoryLevels EventsAllocator::Levels() const noexcept {
  const Stats strategy = strategy_->stats();
  const Stats edge = pool_ != nullptr ? pool_->stats() : strategy;
  MemoryLevels levels;
  levels.allocator_name = strategy_->name();
  levels.reserved_bytes = edge.reserved_bytes;
  levels.limit_bytes = SmallerLimit(strategy.limit_bytes, edge.limit_bytes);
  levels.fragmentation = FragmentationOf(strategy);
  return levels;
}

Allocation* EventsAllocator::TryAllocate(const Request& request,
                                         Failure& failure) noexcept {
  Allocation* allocation = underlying()->TryAllocate(request, failure);
  if (allocation != nullptr) sink_->Allocated(*allocation, Levels());
  return allocation;
}

void EventsAllocator::DoFree(Allocation* allocation) noexcept {
  sink_->Freed(*allocation, Levels());
  underlying()->DoFree(allocation);
}

std::shared_ptr<Allocator> MakeEventsAllocator(
    std::shared_ptr<Allocator> underlying, const DecoratorOptions& options,
    const ChainContext& context) {
  if (options.trace_events_path.empty()) return underlying;
  return std::make_shared<EventsAllocator>(
      std::move(underlying),
      context.Shared<EventSink>(ServiceScope::kFacade,
                                options.trace_events_path, *context.clock));
}

}  // namespace strata
