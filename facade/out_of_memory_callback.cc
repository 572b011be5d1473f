#include "strata/facade/out_of_memory_callback.h"

#include <exception>
#include <utility>

#include "strata/base/log.h"

namespace strata {

OutOfMemoryCallback::Source::Source(Place place, OutOfMemoryFunction function)
    : place_(place),
      function_(
          std::make_shared<const OutOfMemoryFunction>(std::move(function))) {}

void OutOfMemoryCallback::Source::Drop() noexcept {
  std::shared_ptr<const OutOfMemoryFunction> dropped;
  const std::lock_guard<std::mutex> guard(mutex_);
  dropped.swap(function_);
}

std::size_t OutOfMemoryCallback::Source::Reclaim(Stream /*stream*/,
                                                 std::size_t bytes) noexcept {
  // The callback may destroy the handle, which owns this object.
  const std::shared_ptr<Source> self = shared_from_this();
  std::shared_ptr<const OutOfMemoryFunction> function;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    function = function_;
  }
  if (function == nullptr) return 0;
  try {
    return (*function)(place_, bytes);
  } catch (const std::exception& error) {
    STRATA_LOG(Error) << "an out-of-memory callback failed: " << error.what();
  } catch (...) {
    STRATA_LOG(Error) << "an out-of-memory callback failed";
  }
  return 0;
}

OutOfMemoryCallback::OutOfMemoryCallback(
    std::shared_ptr<Source> source, const std::shared_ptr<Reclaimer>& reclaimer,
    int priority)
    : source_(std::move(source)),
      registration_(Reclaimer::Register(reclaimer, Reclaimer::Step::kCallbacks,
                                        *source_, priority)) {}

OutOfMemoryCallback& OutOfMemoryCallback::operator=(
    OutOfMemoryCallback&& other) noexcept {
  registration_ = std::move(other.registration_);
  source_ = std::move(other.source_);
  return *this;
}

}  // namespace strata
