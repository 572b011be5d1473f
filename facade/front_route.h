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
// Model: valid as long as the table of fronts that it was found in has the same
//   version: versions are unique in a process, and change with whatever leaves
//   a table. What is compared decides whether the front is used, but is not
//   needed to find it: the front's address is there with one load, where a
//   table takes four, one after the other.
// Threads: a thread's own.
// Cost: 48 bytes of static thread-local memory each; initial-exec, because the
//   general model costs 4 ns a use in a shared library (hotpath.md §2).
// Source: hotpath.md §7 ("Route").
struct FrontRoute {
  Front* front = nullptr;
  HitState* hit = nullptr;    // the front's
  std::uint64_t version = 0;  // of the table; 0: none was found
  std::uint64_t key = 0;      // a stream's uid or handle
  // The place as C callers name it, which is compared without being understood:
  // what is no place never leads here.
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

  // Two numbers of 32 bits, the kind first.
  static constexpr std::uint64_t WidePlace(std::uint32_t kind,
                                           std::uint32_t index) {
    return std::uint64_t{index} << 32 | kind;
  }
  // Whether it is the front that is asked for.
  bool LeadsTo(Place to, std::uint64_t by, std::uint64_t version_now) const {
    return key == by && place == to && version == version_now;
  }
  bool LeadsTo(std::uint64_t wide, std::uint64_t by,
               std::uint64_t version_now) const {
    return key == by && wide_place == wide && version == version_now;
  }
};

static_assert(sizeof(FrontRoute) == 48);

// Where the thread's last frees of the C ABI found their pointers, for its next
// one.
//
// Model: a guess, and valid as long as the table of fronts has the same
//   version: `group` is the facade's then, and `lock` was its guard, which who
//   has taken it asks the group. So the lock can be taken before anything is
//   known of the pointer, whose region may have to be fetched. Followed only
//   once kSteady frees in a row led there, and left by one that did not: so who
//   frees pointers of several streams in turn takes the lock of another stream
//   than the pointer's seldom, if at all.
// Threads, cost: as FrontRoute; 32 bytes.
struct FreeRoute {
  // At worst one free in so many takes another stream's lock.
  static constexpr std::uint32_t kSteady = 64;

  PointerGroup* group = nullptr;
  ChainLock* lock = nullptr;
  std::uint64_t version = 0;  // of the table; 0: not to be followed
  // Frees in a row that led to `group`, or to one of another facade that was
  // there before: then this is followed too early, no more.
  std::uint32_t run = 0;

  bool IsSteady(std::uint64_t version_now) const {
    return version == version_now;
  }
  // A free leads to the group `to`.
  void Note(PointerGroup& to, ChainLock& guard, std::uint64_t version_now) {
    run = group != &to ? 1 : run < kSteady ? run + 1 : run;
    group = &to;
    lock = &guard;
    version = run == kSteady ? version_now : 0;
  }
  // One did not.
  void Leave() { *this = {}; }
};

static_assert(sizeof(FreeRoute) == 32);

STRATA_INITIAL_EXEC extern thread_local constinit FreeRoute t_free_route;
// By a stream's uid.
STRATA_INITIAL_EXEC extern thread_local constinit FrontRoute t_stream_route;
// By a stream's handle.
STRATA_INITIAL_EXEC extern thread_local constinit FrontRoute t_handle_route;
// Of requests that name no stream; the key is 0.
STRATA_INITIAL_EXEC extern thread_local constinit FrontRoute t_default_route;

}  // namespace strata

#endif  // STRATA_FACADE_FRONT_ROUTE_H_
