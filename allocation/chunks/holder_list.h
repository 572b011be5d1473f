#ifndef STRATA_ALLOCATION_CHUNKS_HOLDER_LIST_H_
#define STRATA_ALLOCATION_CHUNKS_HOLDER_LIST_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "strata/allocation/chunks/chunk_holder.h"
#include "strata/allocation/reclaim/call_gate.h"
#include "strata/base/function_ref.h"
#include "strata/platform/stream.h"

namespace strata {

// The strategies of one place that may have idle memory.
//
// Model: a Round is a list of holders to ask. A holder may be removed during a
//   round: each call passes its gate, which Remove() closes. If there are more
//   than kMostAsked holders, rounds of kSome take turns.
// Threads: any thread. No lock is held during a call of a holder.
class HolderList {
 public:
  struct Entry {
    ChunkHolder* holder = nullptr;
    CallGate gate;  // closed after the holder is removed
    // Its keys in by_stream_: the stream of the holder, and streams for
    // TellHeedersOfEnd(). Guarded by mutex_.
    std::unordered_set<std::uint64_t> streams;
  };
  using Entries = std::vector<std::shared_ptr<Entry>>;

  // Asking more than kMostAsked holders takes longer than the driver call that
  // it may save (0.1 us each, docs/exchange.md; cudaMalloc 60 us and more).
  enum class Asked : std::uint8_t { kSome, kAll };
  static constexpr std::size_t kMostAsked = 512;

  // The holders to ask: `count` of the first `size` entries of `list`, from
  // `first` on. Some may be removed. Other threads may append to the list
  // concurrently, within its capacity.
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

  // Adds a holder until it is removed. Remove() waits for calls in flight.
  //
  // Errors: Add(): std::bad_alloc.
  // Cost: O(1), amortised.
  void Add(ChunkHolder& holder);
  void Remove(ChunkHolder& holder) noexcept;

  std::size_t size() const noexcept {
    return count_.load(std::memory_order_relaxed);
  }

  Round RoundOf(Asked asked) const;
  // Makes the next round of kSome ask other holders, if not all are asked.
  void AskOthersNext() noexcept {
    turn_.fetch_add(kMostAsked, std::memory_order_relaxed);
  }
  // Calls `ask` with every holder of a round that is not yet removed.
  void ForEach(FunctionRef<void(ChunkHolder&)> ask,
               Asked asked = Asked::kAll) const noexcept;

  // Notifies the holders that serve only `stream` that it is about to be
  // destroyed.
  void TellOwnersOfEnd(Stream stream) noexcept;
  // Registers `holder`: TellHeedersOfEnd(stream) will call holder.StreamEnds(),
  // once.
  //
  // Errors: std::bad_alloc.
  void HeedEnd(Stream stream, ChunkHolder& holder);
  // Notifies the holders that heed the end of `stream` that it is about to be
  // destroyed.
  //
  // Cost: visits no other holder.
  void TellHeedersOfEnd(Stream stream) noexcept;

 private:
  // Replaces the list by one without removed holders and with more capacity.
  // Needs mutex_. Errors: std::bad_alloc.
  void Renew();
  // Makes by_stream_ find `entry` by `uid`. Needs mutex_. Errors:
  // std::bad_alloc.
  void Link(const std::shared_ptr<Entry>& entry, std::uint64_t uid);

  mutable std::mutex mutex_;
  // Appended to within its capacity, or replaced: a Round reads the elements
  // that were there. Few of them are removed holders. Guarded by mutex_, as are
  // the maps.
  std::shared_ptr<Entries> entries_;
  std::unordered_map<const ChunkHolder*, std::shared_ptr<Entry>> by_holder_;
  // Key: uid of a stream. Value: the holders of that stream, and those that
  // heed its end.
  std::unordered_multimap<std::uint64_t, std::shared_ptr<Entry>> by_stream_;
  std::atomic<std::size_t> count_{0};
  // Index of the first holder of a round of kSome; wraps.
  std::atomic<std::size_t> turn_{0};
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_CHUNKS_HOLDER_LIST_H_
