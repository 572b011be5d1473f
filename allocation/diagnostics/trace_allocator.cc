#include "strata/allocation/diagnostics/trace_allocator.h"

#include <cinttypes>
#include <cstdio>
#include <new>
#include <utility>

#include "strata/allocation/decorators/registry.h"

namespace strata {

TraceSink::TraceSink(const std::string& path, const Clock& clock)
    : clock_(clock), file_("strata_trace_file", path) {
  std::fputs("Thread,Time,Action,Pointer,Size,Stream,Place\n", file_.get());
}

void TraceSink::Row(const char* action, const void* data, std::size_t bytes,
                    Stream stream, Place place) noexcept {
  const std::string where = ToString(place);
  const std::lock_guard<std::mutex> guard(mutex_);
  int thread = 0;
  try {
    thread = threads_
                 .emplace(std::this_thread::get_id(),
                          static_cast<int>(threads_.size()) + 1)
                 .first->second;
  } catch (const std::bad_alloc&) {
    file_.NoteLost();
    return;
  }
  const auto us = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::microseconds>(clock_.Now())
          .count());
  std::fprintf(file_.get(),
               "%d,%02" PRIu64 ":%02" PRIu64 ":%02" PRIu64 ":%06" PRIu64 ",%s,",
               thread, us / 3'600'000'000, us / 60'000'000 % 60,
               us / 1'000'000 % 60, us % 1'000'000, action);
  if (data == nullptr) {
    std::fputs("(nil)", file_.get());
  } else {
    std::fprintf(file_.get(), "0x%" PRIxPTR,
                 reinterpret_cast<std::uintptr_t>(data));
  }
  std::fprintf(file_.get(), ",%zu,%" PRIu64 ",%s\n", bytes, stream.uid,
               where.c_str());
  file_.EndEntry();
}

void TraceSink::Allocated(const void* data, std::size_t bytes, Stream stream,
                          Place place) noexcept {
  Row(data != nullptr ? "allocate" : "allocate failure", data, bytes, stream,
      place);
}

void TraceSink::Freed(const void* data, std::size_t bytes, Stream stream,
                      Place place) noexcept {
  Row("free", data, bytes, stream, place);
}

void TraceSink::Released(Place place) noexcept {
  Row("release", nullptr, 0, Stream(), place);
}

TraceAllocator::TraceAllocator(std::shared_ptr<Allocator> underlying,
                               std::shared_ptr<TraceSink> sink)
    : Decorator(std::move(underlying)), sink_(std::move(sink)) {}

Allocation* TraceAllocator::TryAllocate(const Request& request,
                                        Failure& failure) noexcept {
  Allocation* allocation = underlying()->TryAllocate(request, failure);
  // A request that only looks for a cached block does not run out of memory.
  if (allocation == nullptr && !failure.IsExhaustion()) return nullptr;
  // Write the row after the allocation and before the free. So the rows are in
  // a valid order if another thread reuses the address.
  sink_->Allocated(allocation != nullptr ? allocation->data() : nullptr,
                   request.bytes, stream(), place());
  return allocation;
}

void TraceAllocator::DoFree(Allocation* allocation) noexcept {
  sink_->Freed(allocation->data(), allocation->requested_bytes(), stream(),
               place());
  underlying()->DoFree(allocation);
}

std::shared_ptr<TraceSink> TraceSinkOf(const DecoratorOptions& options,
                                       const ChainContext& context) {
  const std::string& path = options.trace_path;
  return path.empty() ? nullptr
                      : context.Shared<TraceSink>(ServiceScope::kFacade, path,
                                                  *context.clock);
}

std::shared_ptr<Allocator> MakeTraceAllocator(
    std::shared_ptr<Allocator> underlying, const DecoratorOptions& options,
    const ChainContext& context) {
  auto sink = TraceSinkOf(options, context);
  if (sink == nullptr) return underlying;
  return std::make_shared<TraceAllocator>(std::move(underlying),
                                          std::move(sink));
}

}  // namespace strata
