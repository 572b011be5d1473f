#ifndef STRATA_FACADE_LOOKUP_FRONT_ROUTE_H_
#define STRATA_FACADE_LOOKUP_FRONT_ROUTE_H_

#include <cstdint>

#include "strata/base/initial_exec.h"
#include "strata/platform/place.h"

namespace strata {

class Front;
struct HitState;

// The front that a thread found last, for its next request of the same kind.
//
// Model: valid as long as the table of fronts has the version that it had at
//   the lookup. Versions are unique in a process, and every removal from a
//   table changes its version. The key and place decide whether the front is
//   used, but are not needed to find it: one load reads the front's address. A
//   table needs four dependent loads.
// Threads: thread-local.
// Cost: 40 bytes of static thread-local memory each; initial-exec, because the
//   general model costs 4 ns a use in a shared library (hotpath.md §2).
// Source: hotpath.md §7 ("Route").
struct FrontRoute {
  Front* front = nullptr;
  HitState* hit = nullptr;    // hit state of the front
  std::uint64_t version = 0;  // of the table; 0: no front was found
  std::uint64_t key = 0;      // a stream's uid or handle
  Place place;

  FrontRoute() = default;
  FrontRoute(Front& to, HitState& state, std::uint64_t version_now,
             std::uint64_t by, Place at)
      : front(&to), hit(&state), version(version_now), key(by), place(at) {}

  // Whether the route leads to the requested front.
  bool LeadsTo(Place to, std::uint64_t by, std::uint64_t version_now) const {
    return key == by && place == to && version == version_now;
  }
};

static_assert(sizeof(FrontRoute) == 40);

// Keyed by a stream's uid.
STRATA_INITIAL_EXEC extern thread_local constinit FrontRoute t_stream_route;
// Keyed by a stream's handle.
STRATA_INITIAL_EXEC extern thread_local constinit FrontRoute t_handle_route;
// For requests that name no stream; the key is 0.
STRATA_INITIAL_EXEC extern thread_local constinit FrontRoute t_default_route;

}  // namespace strata

#endif  // STRATA_FACADE_LOOKUP_FRONT_ROUTE_H_
