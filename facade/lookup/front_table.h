#ifndef STRATA_FACADE_LOOKUP_FRONT_TABLE_H_
#define STRATA_FACADE_LOOKUP_FRONT_TABLE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "strata/facade/lookup/key_table.h"
#include "strata/platform/place.h"

namespace strata {

class Front;

// The fronts of a facade by place and stream. Memory without streams uses the
// legacy stream's uid.
//
// Threads, cost: as KeyTable.
class FrontTable {
 public:
  // Null if there is no front, or if a concurrent change interfered: then call
  // FindLocked. A wrong place or uid has no front.
  Front* Find(Place place, std::uint64_t uid) const {
    return table_.Find(KeyOf(place, uid));
  }
  Front* FindLocked(Place place, std::uint64_t uid) const {
    return table_.FindLocked(KeyOf(place, uid));
  }
  // A version that is unique in the process. It changes whenever a front is
  // removed or replaced. Read it before a lookup: the result is valid as long
  // as the version is unchanged (front_route.h).
  std::uint64_t version() const {
    return version_.load(std::memory_order_acquire);
  }
  void ChangeVersion() {
    version_.store(NewVersion(), std::memory_order_release);
  }
  // Errors: std::bad_alloc.
  void Insert(Place place, std::uint64_t uid, Front* front) {
    table_.Insert(KeyOf(place, uid), front);
    ChangeVersion();
  }
  void Remove(Place place, std::uint64_t uid) {
    table_.Remove(KeyOf(place, uid));
    ChangeVersion();
  }
  // Removes all fronts of the place and calls `visit` with each. Uses no heap.
  template <class Visit>
  void RemoveAll(Place place, Visit visit) {
    const std::uint64_t of_place = KeyOf(place, 0);
    table_.RemoveIf(
        [of_place](std::uint64_t key) {
          return (key & kPlaceMask) == of_place;
        },
        [this, &visit](Front* front) {
          ChangeVersion();  // first: it ends the routes to this front
          visit(front);
        });
  }

 private:
  static constexpr unsigned kPlaceBits = 24;
  static constexpr std::uint64_t kPlaceMask =
      (std::uint64_t{1} << kPlaceBits) - 1;

  // Uids count streams; a process creates fewer than 2^40.
  static std::uint64_t KeyOf(Place place, std::uint64_t uid) {
    return (uid << kPlaceBits) | (std::uint64_t{place.index} << 8) |
           static_cast<std::uint8_t>(place.kind);
  }

  static std::uint64_t NewVersion() {
    static constinit std::atomic<std::uint64_t> last{0};
    return ++last;
  }

  KeyTable<Front, 11> table_;  // programs may have thousands of streams
  std::atomic<std::uint64_t> version_{NewVersion()};
};

}  // namespace strata

#endif  // STRATA_FACADE_LOOKUP_FRONT_TABLE_H_
