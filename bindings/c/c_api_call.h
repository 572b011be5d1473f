#ifndef STRATA_BINDINGS_C_C_API_CALL_H_
#define STRATA_BINDINGS_C_C_API_CALL_H_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <list>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <unordered_map>

#include "strata/allocation/allocation.h"
#include "strata/bindings/c/pointer_map.h"
#include "strata/bindings/c/strata.h"
#include "strata/facade/allocator_facade.h"
#include "strata/platform/place.h"
#include "strata/platform/stream.h"

// The state behind a strata_facade, and the frame of the functions of the C
// ABI.

namespace strata {

// Streams by the driver's handle, of any device.
//
// Threads: any thread.
// Cost: a lock and a hash table.
class KnownStreams {
 public:
  // Without uid if the handle is unknown.
  Stream Find(void* handle) const {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = streams_.find(handle);
    return found != streams_.end() ? found->second : Stream();
  }
  // Does nothing if the handle is known.
  //
  // Errors: std::bad_alloc.
  void Add(const Stream& stream) {
    const std::lock_guard<std::mutex> guard(mutex_);
    streams_.emplace(stream.handle, stream);
  }
  // Removes `stream`. Does nothing if its handle is unknown, or names another
  // stream by now.
  void Remove(const Stream& stream) {
    const std::lock_guard<std::mutex> guard(mutex_);
    const auto found = streams_.find(stream.handle);
    if (found != streams_.end() && found->second == stream) {
      streams_.erase(found);
    }
  }
  // Removes the stream of the handle, if there is one.
  void Remove(void* handle) {
    const std::lock_guard<std::mutex> guard(mutex_);
    streams_.erase(handle);
  }

 private:
  mutable std::mutex mutex_;
  std::unordered_map<void*, Stream> streams_;  // guarded by mutex_
};

}  // namespace strata

struct strata_facade {
  explicit strata_facade(const strata::Options& options) : facade(options) {
    facade.ObserveLostStreams(
        [this](strata::Stream stream) { known_streams.Remove(stream); });
  }

  strata::AllocatorFacade facade;
  strata::PointerMap pointers;  // destroyed before the facade
  std::mutex mutex;
  std::list<strata::Stream> streams;   // created here; guarded by mutex
  strata::KnownStreams known_streams;  // looked up before, end not announced
};

namespace strata {

// A failure with a status code, but without another exception type.
class CallError : public std::runtime_error {
 public:
  CallError(strata_status code, const std::string& text)
      : std::runtime_error(text), code_(code) {}
  strata_status code() const { return code_; }

 private:
  strata_status code_;
};

// Sets the thread's last error; returns `code`.
strata_status FailCall(strata_status code, const char* function,
                       const char* what) noexcept;

// Call in an exception handler: converts the current exception into a code, as
// FailCall.
strata_status FailWithCurrent(const char* function) noexcept;

// Runs the body of a function of the C ABI and converts its exceptions into a
// code. No exception passes. Inlined by force: an out-of-line call makes every
// hit store and load the captures of the body.
template <class Body>
[[gnu::always_inline]] inline strata_status GuardCall(const char* function,
                                                      Body&& body) noexcept {
  try {
    body();
    return STRATA_OK;
  } catch (...) {
    return FailWithCurrent(function);
  }
}

[[noreturn]] void ThrowNull(const char* name);
[[noreturn]] void ThrowNoPlace(strata_place place);

// Errors: std::invalid_argument if `argument` is NULL; the message contains
//   `name`.
inline void Require(const void* argument, const char* name) {
  if (argument == nullptr) ThrowNull(name);
}
// GuardCall for a function with a facade, which must not be NULL.
template <class Body>
strata_status FacadeCall(const char* function, const strata_facade* facade,
                         Body body) noexcept {
  return GuardCall(function, [&] {
    Require(facade, "facade");
    body();
  });
}
// Whether `place` can name a place.
inline bool IsPlace(strata_place place) {
  // The casts turn negative numbers into large ones.
  return static_cast<std::uint32_t>(place.kind) <= STRATA_MANAGED &&
         static_cast<std::uint32_t>(place.index) <=
             std::numeric_limits<std::uint16_t>::max();
}
// Errors: std::invalid_argument if `place` cannot name a place.
inline Place PlaceOf(strata_place place) {
  if (!IsPlace(place)) ThrowNoPlace(place);
  return Place{static_cast<PlaceKind>(place.kind),
               static_cast<std::uint16_t>(place.index)};
}
// Errors: CallError with STRATA_UNKNOWN_POINTER naming the address.
[[noreturn]] void ThrowUnknown(const void* pointer);
Allocation& FindPointer(const strata_facade& facade, const void* pointer);
// The stream that `handle` names, for use of memory of `place`.
//
// Errors: std::invalid_argument if it names none.
// Cost: device calls for the first lookup of a handle.
Stream StreamOf(strata_facade& facade, Place place, void* handle);
// Announces the end of a stream. Its handle may soon name another stream.
void AnnounceEnd(strata_facade& facade, Stream stream);
// Announces the end of a stream and destroys it.
Status DestroyStream(strata_facade& facade, Stream stream);

}  // namespace strata

#endif  // STRATA_BINDINGS_C_C_API_CALL_H_
