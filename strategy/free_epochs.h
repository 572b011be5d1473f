#ifndef STRATA_STRATEGY_FREE_EPOCHS_H_
#define STRATA_STRATEGY_FREE_EPOCHS_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "strata/allocation/streams/stream_timeline.h"

namespace strata {

// When the free blocks of a stream were freed, as coarsely as it takes to say
// whether another stream may have them.
//
// Model: a block freed now belongs to the current epoch. Close ends it: it gets
//   a tick of the stream's timeline, whose event comes after all its frees. An
//   epoch whose tick is done is over, and with it all before. A block joined of
//   several belongs to the latest of their epochs.
// Threads: none; the strategy's lock guards it.
// Cost: O(1), no device call. A free stores two bytes.
// Source: memory_policy.md §5.1 (ticket); cuda_semantics.md §5.2 M10.
class FreeEpochs {
 public:
  using Epoch = std::uint16_t;

  // That of blocks that nobody has to wait for.
  static constexpr Epoch kNone = 0;

  Epoch current() const { return current_; }
  Epoch over() const { return over_; }
  // Whether the stream's work of the epoch is known to be done.
  bool IsOver(Epoch epoch) const { return epoch <= over_; }

  // Takes in what `timeline` knows to be done.
  void Update(const StreamTimeline& timeline);
  // Ends the current epoch; an event that is recorded from now on covers it.
  void Close(StreamTimeline& timeline);
  // All work of the stream is done, and there will be none any more.
  void PassAll();
  // The tick to wait for before blocks of a closed `epoch` may be used.
  StreamTimeline::Tick TickOf(Epoch epoch) const;

  // No epoch is left: before the next Close, every block that is not over has
  // to be put into the epoch that Restart returns, the current one, and every
  // other into kNone.
  bool is_spent() const {
    return current_ == std::numeric_limits<Epoch>::max();
  }
  Epoch Restart();
  // How often: numbers from before one mean nothing after it.
  std::uint64_t restarts() const { return restarts_; }

 private:
  // Closed epochs not known to be over; when there are more, the newest is
  // taken for as late as the one that follows.
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

#endif  // STRATA_STRATEGY_FREE_EPOCHS_H_
