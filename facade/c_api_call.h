#ifndef STRATA_FACADE_C_API_CALL_H_
#define STRATA_FACADE_C_API_CALL_H_

#include <cstddef>
#include <cstdint>
#include <exception>
#include <limits>
#include <mutex>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "strata/allocation/allocation.h"
#include "strata/facade/allocator_facade.h"
#include "strata/facade/known_streams.h"
#include "strata/facade/pointer_map.h"
#include "strata/facade/strata.h"
#include "strata/platform/place.h"
#include "strata/platform/stream.h"

// What the functions of the C ABI work on, and the frame they run in.

struct strata_facade {
  explicit strata_facade(const strata::Options& options) : facade(options) {
    // The handle may name another stream by now.
    facade.ObserveLostStreams([this](strata::Stream stream) {
      const strata::Stream* const known = known_streams.Find(stream.handle);
      if (known != nullptr && *known == stream) {
        known_streams.Remove(stream.handle);
      }
    });
  }

  strata::AllocatorFacade facade;
  strata::PointerMap pointers;  // goes before the facade
  std::mutex mutex;
  struct MadeStream {
    strata::Stream stream;
    bool is_ending = false;  // somebody is about to destroy it
  };
  std::vector<MadeStream> streams;     // made here; guarded by mutex
  strata::KnownStreams known_streams;  // looked up, and not announced as gone
};

namespace strata {

// A failure for which there is a code, but no exception type elsewhere.
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

// In a handler: turns what is thrown into a code, as FailCall.
strata_status FailWithCurrent(const char* function) noexcept;

// Runs the body of a function of the C ABI and turns what it throws into a
// code. Nothing passes. Inlined by force: as a call it makes every hit store
// and load what the body refers to.
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

// Errors: std::invalid_argument saying that `name` is NULL.
inline void Require(const void* argument, const char* name) {
  if (argument == nullptr) ThrowNull(name);
}
// Whether a place can be meant.
inline bool IsPlace(strata_place place) {
  // Negative numbers are large ones here.
  return static_cast<std::uint32_t>(place.kind) <= STRATA_MANAGED &&
         static_cast<std::uint32_t>(place.index) <=
             std::numeric_limits<std::uint16_t>::max();
}
// Errors: std::invalid_argument if no place can be meant.
inline Place PlaceOf(strata_place place) {
  if (!IsPlace(place)) ThrowNoPlace(place);
  return Place{static_cast<PlaceKind>(place.kind),
               static_cast<std::uint16_t>(place.index)};
}
// Errors: CallError with STRATA_UNKNOWN_POINTER naming the address.
[[noreturn]] void ThrowUnknown(const void* pointer);
Allocation& FindPointer(const strata_facade& facade, const void* pointer);
// The stream that `handle` names where memory of `place` is used.
//
// Errors: std::invalid_argument if it names none.
// Cost: device calls when it is seen for the first time; then no lock.
Stream StreamOf(strata_facade& facade, Place place, void* handle);
// Announces the end of a stream: its handle may name another one soon.
void AnnounceEnd(strata_facade& facade, Stream stream);
// Announces the end of a stream and destroys it.
Status DestroyStream(strata_facade& facade, Stream stream);

}  // namespace strata

#endif  // STRATA_FACADE_C_API_CALL_H_
