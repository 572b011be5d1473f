#ifndef STRATA_FACADE_FRONT_TABLE_H_
#define STRATA_FACADE_FRONT_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "strata/facade/key_table.h"
#include "strata/platform/place.h"

namespace strata {

class Front;

// The fronts of a facade by place and stream. Of memory without streams: under
// the legacy stream's uid.
//
// Threads, cost: as KeyTable.
class FrontTable {
 public:
  // Null if there is none, or if a change got in the way: FindLocked knows. A
  // wrong place or uid is one that has none.
  Front* Find(Place place, std::uint64_t uid) const {
    return table_.Find(KeyOf(place, uid));
  }
  // The same in fewer instructions, but null too if another front that came
  // later shares its place in the table: Find knows.
  Front* FindAtOnce(Place place, std::uint64_t uid) const {
    return table_.FindAtOnce(KeyOf(place, uid));
  }
  Front* FindLocked(Place place, std::uint64_t uid) const {
    return table_.FindLocked(KeyOf(place, uid));
  }
  // Errors: std::bad_alloc.
  void Insert(Place place, std::uint64_t uid, Front* front) {
    table_.Insert(KeyOf(place, uid), front);
  }
  void Remove(Place place, std::uint64_t uid) {
    table_.Remove(KeyOf(place, uid));
  }
  // All of the place. Errors: std::bad_alloc; then nothing is removed.
  std::vector<Front*> RemoveAll(Place place) {
    const std::uint64_t of_place = KeyOf(place, 0);
    return table_.RemoveIf([of_place](std::uint64_t key) {
      return (key & kPlaceMask) == of_place;
    });
  }

 private:
  static constexpr unsigned kPlaceBits = 24;
  static constexpr std::uint64_t kPlaceMask =
      (std::uint64_t{1} << kPlaceBits) - 1;

  // Uids count streams; a process makes no 2^40 of them.
  static std::uint64_t KeyOf(Place place, std::uint64_t uid) {
    return (uid << kPlaceBits) | (std::uint64_t{place.index} << 8) |
           static_cast<std::uint8_t>(place.kind);
  }

  KeyTable<Front> table_;
};

}  // namespace strata

#endif  // STRATA_FACADE_FRONT_TABLE_H_
