#ifndef STRATA_STRATEGY_SHARED_SHARED_ORDER_H_
#define STRATA_STRATEGY_SHARED_SHARED_ORDER_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "strata/allocation/streams/chain_stream.h"
#include "strata/allocation/streams/stream_timeline.h"
#include "strata/platform/status.h"

namespace strata {

// The streams that share one strategy, as one ChainStream for it. A wait for it
// waits for all of them.
//
// Model: stream A may free a block to the strategy while work of A still uses
//   it. Before stream B allocates from the strategy, B is made to wait for A on
//   the device. No wait is needed if A has freed nothing in this way since B
//   last waited for it. So a place with one stream never waits. With several
//   streams in use, frees wait first (BusyFrees) and no wait is needed, unless
//   the user requested waits on the device, or a request would fail. If a
//   capture forbids to touch B, the host waits for the work of A.
//   A strategy may divide its memory into lanes (Chunk::lane). Memory changes
//   its lane only after all work on it is done. So B waits only for frees in
//   the lane of its block, and the streams of two threads of thread_local stay
//   independent.
// Threads: any thread. No lock is held during a device call.
// Cost: two atomic loads if no other stream freed anything. Else one event,
//   recorded and waited for, per stream that did. The host waits for a stream
//   without timeline, and for each stream if a capture forbids to touch the
//   waiting one. A free is a few loads. If another stream has looked for frees
//   since the last one, it is also two atomic additions.
// Source: DESIGN §4 ("or by a wait"); cuda_semantics.md §5.2 M3.
class SharedOrder final : public ChainStream {
 public:
  SharedOrder() = default;
  // For streams of `device`, and a strategy that queries it for memory.
  explicit SharedOrder(Device& device) : ChainStream(device, Stream()) {}

  // One chain: its stream, and the frees of others it is ordered after.
  class Share;

  // Pools beyond this number share lanes, which orders more than is needed.
  static constexpr std::size_t kLanes = 16;
  static std::size_t LaneOf(const Block& block) noexcept {
    return block.chunk != nullptr ? block.chunk->lane % kLanes : 0;
  }

  // Makes no device call. Errors: std::bad_alloc.
  std::shared_ptr<Share> Join(std::shared_ptr<ChainStream> stream);
  // Forgets streams that have ended and have no work left. Queries the device.
  void ForgetOver() noexcept;

  void Activate(Share& share) noexcept;
  // Its stream has no memory left, and will request none.
  void Leave(Share& share) noexcept;
  bool several() const noexcept { return active_.load() > 1; }
  bool IsActive(const Share& share) const noexcept;

  // Notes that `share` is about to free memory of `lane` to the strategy, and
  // that its stream may still use this memory.
  void NoteFree(Share& share, std::size_t lane) noexcept;
  // NoteFree for memory of all lanes.
  void NoteFrees(Share& share) noexcept;
  // Orders later work of the stream of `share` after the work of every free in
  // `lane` noted so far. If it fails, no memory may be handed out. kNotReady:
  // captures forbid to order the stream, and no event says when that work is
  // done.
  Status OrderAfterOthers(Share& share, std::size_t lane) noexcept;
  // Whether another stream can be made to wait for the work that the stream of
  // `share` has now. Records an event if there is none. False beside a capture,
  // for a per-thread stream, which other threads cannot name, and for a stream
  // that forbids waits.
  bool MayWaitFor(const Share& share) const noexcept;
  // Whether the stream of `share` is ordered after every free in `lane`
  // already.
  bool IsOrdered(const Share& share, std::size_t lane) const noexcept;

  // The device of the streams that joined; null before the first.
  Device* memory_device() const override { return memory_device_.load(); }
  Status Synchronize() noexcept override;
  bool IsDone() noexcept override;

 private:
  using Shares = std::vector<std::shared_ptr<Share>>;
  using Counts = std::array<std::atomic<std::uint64_t>, kLanes>;

  // Every other share. Adds the frees in `lane` of shares that have ended to
  // `frees`.
  Shares Others(const Share& share, std::size_t lane,
                std::uint64_t& frees) const;

  std::atomic<int> active_{0};  // Shares that requested memory.
  Counts frees_{};              // Frees of all shares, by lane.
  std::atomic<Device*> memory_device_{nullptr};
  mutable std::mutex mutex_;
  Shares shares_;  // guarded by mutex_
  // Frees of forgotten shares, by lane; guarded by mutex_.
  std::array<std::uint64_t, kLanes> gone_frees_{};
  std::size_t next_id_ = 0;  // guarded by mutex_
};

class SharedOrder::Share {
 public:
  Share(std::shared_ptr<ChainStream> stream, std::size_t id)
      : stream_(std::move(stream)), timeline_(stream_->timeline()), id_(id) {}

  ChainStream& stream() const { return *stream_; }

 private:
  friend class SharedOrder;

  // Number of `other`'s frees in `lane` that this stream is ordered after.
  std::uint64_t SeenOf(const Share& other, std::size_t lane) const;
  void See(const Share& other, std::size_t lane, std::uint64_t frees);

  const std::shared_ptr<ChainStream> stream_;
  StreamTimeline* const timeline_;  // Timeline of stream_; null: none.
  const std::size_t id_;            // Position in seen_ of other shares.
  std::atomic<bool> is_active_{false};
  // The counts below are by lane.
  // Frees; those before another stream looked count as one.
  Counts frees_{};
  // The largest value of frees_ that another stream has read to order itself.
  Counts looked_at_{};
  // A lower bound on the frees of all other shares that this stream is ordered
  // after.
  Counts seen_in_all_{};
  mutable std::mutex mutex_;
  // By lane and id; guarded by mutex_.
  std::array<std::vector<std::uint64_t>, kLanes> seen_;
};

// Inline, because every hit calls them.

inline bool SharedOrder::IsActive(const Share& share) const noexcept {
  return share.is_active_.load(std::memory_order_relaxed);
}

inline bool SharedOrder::IsOrdered(const Share& share,
                                   std::size_t lane) const noexcept {
  const std::uint64_t own = share.frees_[lane].load();
  // May count frees that are being noted now, of this share or another. So the
  // result says whether there may be new frees, not how many were seen.
  const std::uint64_t at_most = frees_[lane].load() - own;
  return at_most == share.seen_in_all_[lane].load();
}

inline void SharedOrder::NoteFree(Share& share, std::size_t lane) noexcept {
  // First, so that a thread that reads the new count also reads the tick.
  if (share.timeline_ != nullptr) share.timeline_->Owe();
  // No stream has ordered itself after the last free yet. A stream that does so
  // later reads the tick owed above, because these loads are in one total
  // order.
  if (share.frees_[lane].load() > share.looked_at_[lane].load()) return;
  // In this order. A reader loads the count of a share first, so it never
  // counts fewer frees of the others than there were.
  ++frees_[lane];
  ++share.frees_[lane];
}

}  // namespace strata

#endif  // STRATA_STRATEGY_SHARED_SHARED_ORDER_H_
