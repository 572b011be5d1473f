#ifndef STRATA_FACADE_LOOKUP_FRONT_TABLE_H_
#define STRATA_FACADE_LOOKUP_FRONT_TABLE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <type_traits>
#include <vector>

#include "strata/base/this_thread.h"
#include "strata/platform/place.h"

namespace strata {

class Front;
struct ChainState;

// Finds a front by a 64-bit key without a lock: KeyOf, or the handle of a
// stream.
//
// Model: a hash table of chains. Nodes are recycled, and freed only with the
//   table. A reader that walks a chain while a node in it is recycled may miss
//   its key, but never finds a wrong one. After a miss, search again with the
//   lock held (FindLocked).
// Threads: any thread. A lookup of a key during its removal is an error of the
//   caller: it announced the end of the stream that it uses.
// Cost: Find is a hash and two cache lines, up to about as many keys as there
//   are buckets, 2048 of 8 bytes. Programs may have thousands of streams.
class FrontTable {
 public:
  struct Route;  // the front that a thread found last

  FrontTable() = default;
  FrontTable(const FrontTable&) = delete;
  FrontTable& operator=(const FrontTable&) = delete;

  // The key of the front of a stream at a place. A wrong place or uid has no
  // front. Uids count streams; a process creates fewer than 2^40. Memory
  // without streams uses the uid of the legacy stream.
  static std::uint64_t KeyOf(Place place, std::uint64_t uid) {
    return (uid << kPlaceBits) | (std::uint64_t{place.index} << 8) |
           static_cast<std::uint8_t>(place.kind);
  }

  // Null if there is no front, or if a concurrent change interfered.
  Front* Find(std::uint64_t key) const {
    const Node* node = buckets_[Bucket(key)].load(std::memory_order_acquire);
    for (int steps = 0; node != nullptr && steps < kMaxSteps; ++steps) {
      if (node->key.load(std::memory_order_acquire) == key) {
        return node->front.load(std::memory_order_acquire);
      }
      node = node->next.load(std::memory_order_acquire);
    }
    return nullptr;
  }
  Front* FindLocked(std::uint64_t key) const;

  // A version that is unique in the process. It changes whenever a front is
  // removed or replaced. Read it before a lookup: the result is valid as long
  // as the version is unchanged (Route).
  std::uint64_t version() const {
    return version_.load(std::memory_order_acquire);
  }
  void ChangeVersion() noexcept {
    version_.store(NewVersion(), std::memory_order_release);
  }

  // Adds or replaces the front of `key`; `front` is not null.
  //
  // Errors: std::bad_alloc.
  void Insert(std::uint64_t key, Front* front);
  void Remove(std::uint64_t key);
  // Removes all fronts of the place and calls `visit` with each, in any order
  // and without the lock. Uses no heap. A front that another thread inserts
  // meanwhile may remain.
  template <class Visit>
  void RemoveAll(Place place, Visit visit) {
    for (std::atomic<Node*>& head : buckets_) {
      if (head.load() == nullptr) continue;  // Most are empty.
      while (Front* front = TakeFrom(head, kPlaceMask, KeyOf(place, 0))) {
        ChangeVersion();  // first: it ends the routes to this front
        visit(front);
      }
    }
  }

 private:
  struct Node {
    std::atomic<std::uint64_t> key{0};
    std::atomic<Front*> front{nullptr};
    std::atomic<Node*> next{nullptr};
  };
  static constexpr unsigned kPlaceBits = 24;
  static constexpr std::uint64_t kPlaceMask =
      (std::uint64_t{1} << kPlaceBits) - 1;
  static constexpr unsigned kBucketBits = 11;
  // Far above the length of any chain. Only a reader that is disturbed by
  // endless changes gets there.
  static constexpr int kMaxSteps = 1 << 16;

  static std::size_t Bucket(std::uint64_t key) {
    // Fibonacci hashing; the high bits are well mixed.
    return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15U) >>
                                    (64 - kBucketBits));
  }
  static std::uint64_t NewVersion() noexcept;
  // Removes the first node of the chain with the bits `key` under `mask`; null
  // if there is none.
  Front* TakeFrom(std::atomic<Node*>& head, std::uint64_t mask,
                  std::uint64_t key) noexcept;
  Node* FindNode(std::uint64_t key) const noexcept;

  std::array<std::atomic<Node*>, std::size_t{1} << kBucketBits> buckets_{};
  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Node>> nodes_;  // all; guarded by mutex_
  std::vector<Node*> spare_;                  // in no chain; guarded by mutex_
  std::atomic<std::uint64_t> version_{NewVersion()};
};

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
struct FrontTable::Route {
  // The kinds of requests; a thread has a route for each. Its key is the uid of
  // a stream, the handle of a stream, or 0 for requests that name no stream.
  enum class Kind : std::uint8_t { kByStream, kByHandle, kByDefault };

  Front* front = nullptr;
  ChainState* hit = nullptr;  // state of the front's chain
  std::uint64_t version = 0;  // of the table; 0: no front was found
  std::uint64_t key = 0;      // a stream's uid or handle
  Place place;

  Route() = default;
  Route(Front& to, ChainState& state, std::uint64_t version_now,
        std::uint64_t by, Place at)
      : front(&to), hit(&state), version(version_now), key(by), place(at) {}

  // The route of `thread`. Zero bytes are a route that leads nowhere.
  static Route& Of(ThreadState& thread, Kind kind) noexcept {
    return reinterpret_cast<Route*>(
        thread.routes)[static_cast<std::size_t>(kind)];
  }

  // Whether the route leads to the requested front.
  bool LeadsTo(Place to, std::uint64_t by, std::uint64_t version_now) const {
    return key == by && place == to && version == version_now;
  }
};

static_assert(3 * sizeof(FrontTable::Route) == sizeof(ThreadState::routes) &&
              std::is_trivially_copyable_v<FrontTable::Route> &&
              std::is_trivially_destructible_v<FrontTable::Route>);

}  // namespace strata

#endif  // STRATA_FACADE_LOOKUP_FRONT_TABLE_H_
