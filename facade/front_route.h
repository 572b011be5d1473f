#ifndef STRATA_FACADE_FRONT_ROUTE_H_
#define STRATA_FACADE_FRONT_ROUTE_H_

#include <cstdint>

#include "strata/platform/initial_exec.h"
#include "strata/platform/place.h"

namespace strata {

class ChainLock;
class Front;
class PointerGroup;
struct HitState;

// The front that a thread found last, for its next request of the same kind.
//
// Model: valid as long as the table of fronts has the version that it had at
//   the lookup. Versions are unique in a process, and every removal from a
//   table changes its version. The key and place decide whether the front is
//   used, but are not needed to find it: one load reads the front's address. A
//   table needs four dependent loads.
// Threads: thread-local.
// Cost: 48 bytes of static thread-local memory each; initial-exec, because the
//   general model costs 4 ns a use in a shared library (hotpath.md §2).
// Source: hotpath.md §7 ("Route").
struct FrontRoute {
  Front* front = nullptr;
  HitState* hit = nullptr;    // hit state of the front
  std::uint64_t version = 0;  // of the table; 0: no front was found
  std::uint64_t key = 0;      // a stream's uid or handle
  // The place in the form of C callers. It is compared without validation: an
  // invalid place never matches.
  std::uint64_t wide_place = 0;
  Place place;

  FrontRoute() = default;
  FrontRoute(Front& to, HitState& state, std::uint64_t version_now,
             std::uint64_t by, Place at)
      : front(&to),
        hit(&state),
        version(version_now),
        key(by),
        wide_place(WidePlace(static_cast<std::uint32_t>(at.kind), at.index)),
        place(at) {}

  // Two numbers of 32 bits; the kind is the lower one.
  static constexpr std::uint64_t WidePlace(std::uint32_t kind,
                                           std::uint32_t index) {
    return std::uint64_t{index} << 32 | kind;
  }
  // Whether the route leads to the requested front.
  bool LeadsTo(Place to, std::uint64_t by, std::uint64_t version_now) const {
    return key == by && place == to && version == version_now;
  }
  bool LeadsTo(std::uint64_t wide, std::uint64_t by,
               std::uint64_t version_now) const {
    return key == by && wide_place == wide && version == version_now;
  }
};

static_assert(sizeof(FrontRoute) == 48);

// The group where the thread's last frees of the C ABI found their pointers.
//
// Model: a guess for the next free, valid as long as the table of fronts has
//   the same version. Then `group` belongs to the facade, and `lock` was its
//   guard. A thread that acquired `lock` asks the group whether it still is. So
//   the lock can be acquired before the region of the pointer is read, which
//   may be a cache miss. A thread follows the route only after kSteady frees in
//   a row led to the group, and leaves it after one that did not. So a thread
//   that alternates between streams seldom acquires the lock of another stream.
//   Threads, cost: as FrontRoute; 32 bytes.
struct FreeRoute {
  // At worst one free in kSteady acquires another stream's lock.
  static constexpr std::uint32_t kSteady = 64;

  PointerGroup* group = nullptr;
  ChainLock* lock = nullptr;
  std::uint64_t version = 0;  // of the table; 0: do not follow
  // Frees in a row that led to `group`. A group of another facade may have had
  // the same address before: then the route is followed too early, which is
  // harmless.
  std::uint32_t run = 0;

  bool IsSteady(std::uint64_t version_now) const {
    return version == version_now;
  }
  // Records that a free led to the group `to`.
  void Note(PointerGroup& to, ChainLock& guard, std::uint64_t version_now) {
    run = group != &to ? 1 : run < kSteady ? run + 1 : run;
    group = &to;
    lock = &guard;
    version = run == kSteady ? version_now : 0;
  }
  // Call after a free that did not lead to the group.
  void Leave() { *this = {}; }
};

static_assert(sizeof(FreeRoute) == 32);

STRATA_INITIAL_EXEC extern thread_local constinit FreeRoute t_free_route;
// Keyed by a stream's uid.
STRATA_INITIAL_EXEC extern thread_local constinit FrontRoute t_stream_route;
// Keyed by a stream's handle.
STRATA_INITIAL_EXEC extern thread_local constinit FrontRoute t_handle_route;
// For requests that name no stream; the key is 0.
STRATA_INITIAL_EXEC extern thread_local constinit FrontRoute t_default_route;

}  // namespace strata

#endif  // STRATA_FACADE_FRONT_ROUTE_H_
