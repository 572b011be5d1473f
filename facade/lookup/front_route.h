#ifndef STRATA_FACADE_LOOKUP_FRONT_ROUTE_H_
#define STRATA_FACADE_LOOKUP_FRONT_ROUTE_H_

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "strata/base/this_thread.h"
#include "strata/platform/place.h"

namespace strata {

class Front;
struct ChainState;

// The front that a thread found last, for its next request of the same kind.
//
// Model: valid as long as the table of fronts has the version that it had at
//   the lookup. Versions are unique in a process, and every removal from a
//   table changes its version. The key and place decide whether the front is
//   used, but are not needed to find it: one load reads the front's address. A
//   table needs four dependent loads.
// Threads: thread-local.
// Cost: 40 bytes of thread-local memory.
// Source: hotpath.md §7 ("Route").
struct FrontRoute {
  Front* front = nullptr;
  ChainState* hit = nullptr;  // state of the front's chain
  std::uint64_t version = 0;  // of the table; 0: no front was found
  std::uint64_t key = 0;      // a stream's uid or handle
  Place place;

  FrontRoute() = default;
  FrontRoute(Front& to, ChainState& state, std::uint64_t version_now,
             std::uint64_t by, Place at)
      : front(&to), hit(&state), version(version_now), key(by), place(at) {}

  // Whether the route leads to the requested front.
  bool LeadsTo(Place to, std::uint64_t by, std::uint64_t version_now) const {
    return key == by && place == to && version == version_now;
  }
};

// The kinds of requests; a thread has a route for each. Its key is the uid of a
// stream, the handle of a stream, or 0 for requests that name no stream.
enum class RouteKind : std::uint8_t { kByStream, kByHandle, kByDefault };

static_assert(3 * sizeof(FrontRoute) == sizeof(ThreadState::routes) &&
              std::is_trivially_copyable_v<FrontRoute> &&
              std::is_trivially_destructible_v<FrontRoute>);

// Zero bytes are a route that leads nowhere.
inline FrontRoute& RouteOf(ThreadState& thread, RouteKind kind) noexcept {
  return reinterpret_cast<FrontRoute*>(
      thread.routes)[static_cast<std::size_t>(kind)];
}

}  // namespace strata

#endif  // STRATA_FACADE_LOOKUP_FRONT_ROUTE_H_
