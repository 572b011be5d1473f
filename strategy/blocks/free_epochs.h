#ifndef STRATA_STRATEGY_BLOCKS_FREE_EPOCHS_H_
#define STRATA_STRATEGY_BLOCKS_FREE_EPOCHS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "strata/allocation/streams/stream_timeline.h"

namespace strata {

// Records when the free blocks of a stream were freed, just precisely enough to
// decide whether another stream may use them.
//
// Model: a block freed now belongs to the current epoch. Close() ends the epoch
//   and assigns it a tick of the stream's timeline. The event of the tick
//   follows all frees of the epoch. When the tick is done, the epoch and all
//   earlier ones are over. A block coalesced from several belongs to the latest
//   of their epochs.
// Threads: not thread-safe. The strategy's lock guards it.
// Cost: O(1), no device call. A free stores two bytes.
// Source: memory_policy.md §5.1 (ticket); cuda_semantics.md §5.2 M10.
class FreeEpochs {
 public:
  using Epoch = std::uint16_t;

  // Epoch of blocks that need no wait.
  static constexpr Epoch kNone = 0;

  Epoch current() const { return current_; }
  Epoch over() const { return over_; }
  // Whether the stream's work of the epoch is known to be done.
  bool IsOver(Epoch epoch) const { return epoch <= over_; }

  // Updates over() from the ticks that `timeline` knows to be done.
  void Update(const StreamTimeline& timeline);
  // Ends the current epoch. Events recorded from now on cover it.
  void Close(StreamTimeline& timeline);
  // Marks every epoch as over: all work of the stream is done, and no more will
  // come.
  void PassAll();
  // The tick to wait for before another stream may use blocks of a closed
  // `epoch`.
  StreamTimeline::Tick TickOf(Epoch epoch) const;

  // True if the epoch numbers are used up. Before the next Close(), call
  // Restart(). Then move every block of an epoch that is not over into the
  // epoch that Restart() returns, and every other block into kNone.
  bool is_spent() const {
    return current_ == std::numeric_limits<Epoch>::max();
  }
  Epoch Restart();
  // Number of restarts. An epoch number from before a restart is invalid.
  std::uint64_t restarts() const { return restarts_; }

 private:
  // Most closed epochs that are not known to be over. When there are more, the
  // newest one is merged into the one that follows.
  static constexpr std::size_t kClosed = 8;
  struct Closed {
    Epoch epoch = 0;
    StreamTimeline::Tick tick = 0;
  };

  Epoch current_ = 1;
  Epoch over_ = 0;
  std::array<Closed, kClosed> closed_;  // oldest first
  std::size_t closed_count_ = 0;
  std::uint64_t restarts_ = 0;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_BLOCKS_FREE_EPOCHS_H_
