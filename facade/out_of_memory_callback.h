#ifndef STRATA_FACADE_OUT_OF_MEMORY_CALLBACK_H_
#define STRATA_FACADE_OUT_OF_MEMORY_CALLBACK_H_

#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>

#include "strata/allocation/reclaim/reclaimer.h"
#include "strata/platform/place.h"

namespace strata {

// Frees memory for a request of the given bytes; returns the bytes freed.
using OutOfMemoryFunction = std::function<std::size_t(Place, std::size_t)>;

// A callback for exhausted memory. It is registered until this handle is reset
// or destroyed, or its facade is destroyed.
//
// Model: Reset and the destructor wait for calls in flight. Inside a call of
//   its own callback they return at once: no further call begins, calls in
//   flight continue, in other threads too, and the function is destroyed after
//   the last one. Two callbacks, in two threads, that reset each other's
//   handles deadlock.
// Threads: as a value.
class [[nodiscard]] OutOfMemoryCallback {
 public:
  class Source;  // the callback, as a step of the ladder

  OutOfMemoryCallback() = default;
  OutOfMemoryCallback(OutOfMemoryCallback&&) = default;
  OutOfMemoryCallback& operator=(OutOfMemoryCallback&& other) noexcept;
  // For the facade: registers `source`.
  OutOfMemoryCallback(std::shared_ptr<Source> source,
                      const std::shared_ptr<Reclaimer>& reclaimer,
                      int priority);

  void Reset() noexcept { static_cast<void>(*this = OutOfMemoryCallback()); }

 private:
  std::shared_ptr<Source> source_;
  // of source_, so it is destroyed first
  Reclaimer::Registration registration_;
};

class OutOfMemoryCallback::Source final
    : public Reclaimer::Source,
      public std::enable_shared_from_this<OutOfMemoryCallback::Source> {
 public:
  Source(Place place, OutOfMemoryFunction function);

  // Destroys the function once no call is in flight; stops further calls.
  void Drop() noexcept;

  std::size_t Reclaim(Stream stream, std::size_t bytes) noexcept override;

 private:
  const Place place_;
  std::mutex mutex_;
  // Null once dropped; guarded by mutex_.
  std::shared_ptr<const OutOfMemoryFunction> function_;
};

}  // namespace strata

#endif  // STRATA_FACADE_OUT_OF_MEMORY_CALLBACK_H_
