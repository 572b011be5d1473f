#ifndef STRATA_FACADE_FRONT_ROUTE_H_
#define STRATA_FACADE_FRONT_ROUTE_H_

#include <cstdint>

#include "strata/platform/place.h"

namespace strata {

class ChainLock;
class Front;
class PointerGroup;
struct HitState;

// The front that a thread found last, for its next request of the same kind.
//
// Model: valid as long as the table of fronts that it was found in has the same
//   version: versions are unique in a process, and change with whatever leaves
//   a table. What is compared decides whether the front is used, but is not
//   needed to find it: the front's address is there with one load, where a
//   table takes four, one after the other.
// Threads: a thread's own.
// Cost: 40 bytes of static thread-local memory each; initial-exec, because the
//   general model costs 4 ns a use in a shared library (hotpath.md §2).
// Source: hotpath.md §7 ("Route").
struct FrontRoute {
  Front* front = nullptr;
  HitState* hit = nullptr;    // the front's
  std::uint64_t version = 0;  // of the table; 0: none was found
  std::uint64_t key = 0;      // a stream's uid or handle
  Place place;

  // Whether it is the front that is asked for.
  bool LeadsTo(Place to, std::uint64_t by, std::uint64_t version_now) const {
    return key == by && place == to && version == version_now;
  }
};

static_assert(sizeof(FrontRoute) == 40);

// Where the thread's last free of the C ABI looked, for its next one.
//
// Model: a guess, and valid as long as the table of fronts has the same
//   version: `group` is the facade's then, and `lock` was its guard, which who
//   has taken it asks the group. So the lock can be taken before what is known
//   of the pointer's region is there: that only has to agree.
// Threads, cost: as FrontRoute; 32 bytes.
struct FreeRoute {
  PointerGroup* group = nullptr;
  ChainLock* lock = nullptr;
  std::uint64_t version = 0;  // of the table; 0: none
  std::uint16_t owners = 0;   // PointerRegions::WordOf

  bool LeadsTo(std::uint16_t owners_now, std::uint64_t version_now) const {
    return owners == owners_now && version == version_now;
  }
};

static_assert(sizeof(FreeRoute) == 32);

[[gnu::tls_model(
    "initial-exec")]] extern thread_local constinit FreeRoute t_free_route;
// By a stream's uid.
[[gnu::tls_model(
    "initial-exec")]] extern thread_local constinit FrontRoute t_stream_route;
// By a stream's handle.
[[gnu::tls_model(
    "initial-exec")]] extern thread_local constinit FrontRoute t_handle_route;
// Of requests that name no stream; the key is 0.
[[gnu::tls_model(
    "initial-exec")]] extern thread_local constinit FrontRoute t_default_route;

}  // namespace strata

#endif  // STRATA_FACADE_FRONT_ROUTE_H_
