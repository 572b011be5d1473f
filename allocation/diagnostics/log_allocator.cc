#include "strata/allocation/diagnostics/log_allocator.h"

#include <new>
#include <utility>

#include "strata/allocation/decorators/registry.h"

namespace strata {

LogAllocator::LogAllocator(std::shared_ptr<Allocator> underlying,
                           std::shared_ptr<AllocationLog> log)
    : Decorator(std::move(underlying)), log_(std::move(log)) {}

LogAllocator::Ids::node_type LogAllocator::MakeEntry() noexcept {
  try {
    Ids one;
    // The log sets the number when it writes the line.
    one.emplace(nullptr, 0);
    return one.extract(one.begin());
  } catch (const std::bad_alloc&) {
    return {};
  }
}

Allocation* LogAllocator::TryAllocate(const Request& request,
                                      Failure& failure) noexcept {
  if ((request.flags & kWillBeLogged) != 0) {
    return underlying()->TryAllocate(request, failure);
  }
  // First, while there is no allocation to undo.
  Ids::node_type entry = MakeEntry();
  if (!entry) {
    failure = Refusal(Failure::Reason::kHostMemory, request);
    return nullptr;
  }
  Allocation* allocation = underlying()->TryAllocate(request, failure);
  if (allocation == nullptr) return nullptr;
  entry.key() = allocation;
  entry.mapped() = log_->RecordRawAllocation(*allocation, *this);
  const std::lock_guard<std::mutex> guard(mutex_);
  ids_.insert(std::move(entry));
  return allocation;
}

void LogAllocator::DoFree(Allocation* allocation) noexcept {
  std::uint64_t id = 0;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = ids_.find(allocation);
    if (found != ids_.end()) {
      id = found->second;
      ids_.erase(found);
    }
  }
  if (id != 0) log_->RecordRawDeallocation(id, *allocation, *this);
  underlying()->DoFree(allocation);
}

std::shared_ptr<AllocationLog> AllocationLogOf(const DecoratorOptions& options,
                                               const ChainContext& context) {
  const std::string& path = options.allocation_log_path;
  return path.empty()
             ? nullptr
             : context.Shared<AllocationLog>(ServiceScope::kFacade, path);
}

std::shared_ptr<Allocator> MakeLogAllocator(
    std::shared_ptr<Allocator> underlying, const DecoratorOptions& options,
    const ChainContext& context) {
  auto log = AllocationLogOf(options, context);
  if (log == nullptr) return underlying;
  return std::make_shared<LogAllocator>(std::move(underlying), std::move(log));
}

}  // namespace strata
