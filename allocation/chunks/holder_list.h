#ifndef STRATA_ALLOCATION_CHUNKS_HOLDER_LIST_H_
#define STRATA_ALLOCATION_CHUNKS_HOLDER_LIST_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "strata/allocation/call_gate.h"
#include "strata/allocation/chunk_holder.h"
#include "strata/platform/function_ref.h"
#include "strata/platform/stream.h"

namespace strata {

// The strategies of one place that may have idle memory, and how they are
// asked.
//
// Model: a Round is a list of holders to ask. A holder may be removed during a
//   round: it is asked through its gate, which Remove closes. Where there are
//   more than kMostAsked holders, rounds of kSome take turns.
// Threads: any thread. No lock is held during a call of a holder.
class HolderList {
 public:
  struct Entry {
    ChunkHolder* holder = nullptr;
    CallGate gate;             // closed once the holder is removed
    std::uint64_t number = 0;  // above those of holders before; constant
    // Uids of streams whose ends the holder heeds; guarded by mutex_.
    std::unordered_set<std::uint64_t> heeds;
  };
  using Entries = std::vector<std::shared_ptr<Entry>>;

  // To ask more than kMostAsked holders takes longer than the driver call that
  // it may save (0.1 us each, docs/exchange.md; cudaMalloc 60 us and more).
  enum class Asked : std::uint8_t { kSome, kAll };
  static constexpr std::size_t kMostAsked = 512;

  // The holders to ask: `count`, from `first` on, of the first `size` entries
  // of `list`. Some may be gone. Other threads may append to the list
  // meanwhile, within its capacity.
  struct Round {
    std::shared_ptr<const Entries> list;
    const std::shared_ptr<Entry>* entries;
    std::size_t size;
    std::size_t first;
    std::size_t count;

    Entry& operator[](std::size_t i) const {
      return *entries[(first + i) % size];
    }
  };

  HolderList() : entries_(std::make_shared<Entries>()) {}

  // `holder` is asked until it is removed; Remove waits for calls in flight.
  //
  // Errors: Add: std::bad_alloc.
  // Cost: O(1), amortised.
  void Add(ChunkHolder& holder);
  void Remove(ChunkHolder& holder) noexcept;

  std::size_t size() const noexcept {
    return count_.load(std::memory_order_relaxed);
  }
  // Whether a holder has ended (ChunkHolder::Identity).
  bool has_ended() const noexcept { return ended_count_ != 0; }

  Round RoundOf(Asked asked) const;
  // The next round of kSome asks others, if not all are asked.
  void AskOthersNext() noexcept {
    turn_.fetch_add(kMostAsked, std::memory_order_relaxed);
  }
  // Calls `ask` with every holder of a round that is still there.
  void ForEach(FunctionRef<void(ChunkHolder&)> ask,
               Asked asked = Asked::kAll) const noexcept;

  // Tells the holders that serve `stream` alone that it is about to go.
  void TellOwnersOfEnd(Stream stream) noexcept;
  // From now on, TellHeedersOfEnd(stream) calls holder.StreamEnds(), once.
  //
  // Errors: std::bad_alloc.
  void HeedEnd(Stream stream, ChunkHolder& holder);
  // Tells the holders that heed its end that a stream is about to go.
  //
  // Cost: visits no other holder.
  void TellHeedersOfEnd(Stream stream) noexcept;

 private:
  // Replaces the list by one without holders that are gone, with room for more.
  // Hold mutex_. Errors: std::bad_alloc.
  void Renew();

  mutable std::mutex mutex_;
  // Appended to within its capacity, or replaced: a Round reads the elements
  // that were there. Few of them are gone. Guarded by mutex_, as the maps.
  std::shared_ptr<Entries> entries_;
  std::unordered_map<const ChunkHolder*, std::shared_ptr<Entry>> by_holder_;
  // By the uid of its stream.
  std::unordered_multimap<std::uint64_t, std::shared_ptr<Entry>> by_stream_;
  // By the uid of a stream, the holders that heed its end, by their numbers.
  std::unordered_map<std::uint64_t,
                     std::map<std::uint64_t, std::shared_ptr<Entry>>>
      heeding_;
  std::uint64_t added_ = 0;  // holders so far; guarded by mutex_
  std::atomic<std::size_t> count_{0};
  std::atomic<std::size_t> ended_count_{0};
  // Index of the holder that is asked first where not all are; wraps.
  std::atomic<std::size_t> turn_{0};
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_CHUNKS_HOLDER_LIST_H_
