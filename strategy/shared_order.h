#ifndef STRATA_STRATEGY_SHARED_ORDER_H_
#define STRATA_STRATEGY_SHARED_ORDER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "strata/allocation/chain_stream.h"
#include "strata/allocation/streams/stream_timeline.h"
#include "strata/platform/status.h"

namespace strata {

// The streams whose chains share one strategy, as that strategy's stream: to
// wait for it is to wait for all of them.
//
// Model: a block that stream A gave to the strategy at once may still be in use
//   by work in A. Before stream B gets memory from the strategy, B is made to
//   wait for A on the device, unless A has given nothing so since B last waited
//   for it. So a place with one stream never waits. With several in use, blocks
//   are parked first (ParkedFrees), and nothing has to be waited for, unless
//   waiting on the device is what the user asked for. If B must not be touched
//   because of a capture, the host waits, for what A was given before.
// Threads: any thread. No lock is held during a device call.
// Cost: two atomic loads if nothing was given elsewhere; else an event recorded
//   and waited for per stream that gave something. A stream without timeline is
//   waited for on the host, and so is each for one that a capture forbids to
//   touch. A free is a few loads, unless another stream has
//   looked for frees since the last one: then two atomic additions.
// Source: DESIGN §4 ("or by a wait"); cuda_semantics.md §5.2 M3.
class SharedOrder final : public ChainStream {
 public:
  SharedOrder() = default;
  // The streams are of `device`, for a strategy that asks it for its memory.
  explicit SharedOrder(Device& device) : ChainStream(device, Stream()) {}

  // One chain's part: its stream, and what it knows of the others.
  class Share;

  // Makes no device call. Errors: std::bad_alloc.
  std::shared_ptr<Share> Join(std::shared_ptr<ChainStream> stream);
  // Forgets the streams that are gone and whose work is done, which asks the
  // device; for who is about to have a stream join.
  void ForgetOver() noexcept;

  // The stream of `share` asks for memory, for the first time or again.
  void Activate(Share& share) noexcept;
  // It never will again, and has nothing left.
  void Leave(Share& share) noexcept;
  // Whether more than one stream is in use.
  bool several() const noexcept { return active_.load() > 1; }
  // Whether the stream of `share` is.
  bool IsActive(const Share& share) const noexcept;

  // `share` is about to give memory back to the strategy, which its stream may
  // still use.
  void NoteFree(Share& share) noexcept;
  // Orders what is next submitted to the stream of `share` after the work of
  // every free noted so far. On failure nothing may be handed out: kNotReady if
  // captures forbid to order it, and no event says when that work is done.
  Status OrderAfterOthers(Share& share) noexcept;
  // Whether it is so ordered already.
  bool IsOrdered(const Share& share) const noexcept;

  // That of the streams that joined; null before the first.
  Device* memory_device() const override { return memory_device_.load(); }
  Status Synchronize() noexcept override;
  bool IsDone() noexcept override;

 private:
  using Shares = std::vector<std::shared_ptr<Share>>;

  // Every share but `share`. Adds the frees of those that are gone to `frees`.
  Shares Others(const Share* share, std::uint64_t& frees) const;
  Shares All() const;
  void Forget(const Shares& over);  // mutex_ is held

  std::atomic<int> active_{0};           // shares that asked for memory
  std::atomic<std::uint64_t> frees_{0};  // of all shares
  std::atomic<Device*> memory_device_{nullptr};
  mutable std::mutex mutex_;
  Shares shares_;                 // guarded by mutex_
  std::uint64_t gone_frees_ = 0;  // of shares forgotten; guarded by mutex_
  std::size_t next_id_ = 0;       // guarded by mutex_
};

class SharedOrder::Share {
 public:
  Share(std::shared_ptr<ChainStream> stream, std::size_t id)
      : stream_(std::move(stream)), timeline_(stream_->timeline()), id_(id) {}

  ChainStream& stream() const { return *stream_; }

 private:
  friend class SharedOrder;

  // How many of `other`'s frees this stream is ordered after.
  std::uint64_t SeenOf(const Share& other) const;
  void See(const Share& other, std::uint64_t frees);

  const std::shared_ptr<ChainStream> stream_;
  StreamTimeline* const timeline_;  // of stream_; null: none
  const std::size_t id_;            // position in the others' seen_
  std::atomic<bool> is_active_{false};
  // Those that nobody had looked for when they came count as one.
  std::atomic<std::uint64_t> frees_{0};
  // The most of frees_ that another stream has looked at, to order itself.
  std::atomic<std::uint64_t> looked_at_{0};
  // Frees of all other shares that this stream is ordered after; at least.
  std::atomic<std::uint64_t> seen_in_all_{0};
  mutable std::mutex mutex_;
  std::vector<std::uint64_t> seen_;  // by id; guarded by mutex_
};

// Of every hit, so inline.

inline bool SharedOrder::IsActive(const Share& share) const noexcept {
  return share.is_active_.load(std::memory_order_relaxed);
}

inline bool SharedOrder::IsOrdered(const Share& share) const noexcept {
  const std::uint64_t own = share.frees_.load();
  // May count frees that are just being noted, of this share or another. So it
  // tells whether there may be something new, and not how much was seen.
  const std::uint64_t at_most = frees_.load() - own;
  return at_most == share.seen_in_all_.load();
}

inline void SharedOrder::NoteFree(Share& share) noexcept {
  // First, so that who sees the free knows its moment.
  if (share.timeline_ != nullptr) share.timeline_->Owe();
  // Nobody has ordered itself after the last one yet, and who does from now on
  // sees what was owed by now (both are in the one order of these loads).
  if (share.frees_.load() > share.looked_at_.load()) return;
  // In this order, so that a reader who takes the count of a share first never
  // counts fewer frees of the others than there were.
  ++frees_;
  ++share.frees_;
}

}  // namespace strata

#endif  // STRATA_STRATEGY_SHARED_ORDER_H_
