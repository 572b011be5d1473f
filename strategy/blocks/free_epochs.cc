#include "strata/strategy/blocks/free_epochs.h"

namespace strata {

void FreeEpochs::Update(const StreamTimeline& timeline) {
  std::size_t done = 0;
  while (done < closed_count_ && timeline.IsDone(closed_[done].tick)) ++done;
  if (done == 0) return;
  over_ = closed_[done - 1].epoch;
  const auto begin = closed_.begin();
  std::move(begin + static_cast<std::ptrdiff_t>(done),
            begin + static_cast<std::ptrdiff_t>(closed_count_), begin);
  closed_count_ -= done;
}

void FreeEpochs::Close(StreamTimeline& timeline) {
  if (closed_count_ == kClosed) --closed_count_;
  closed_[closed_count_++] = {current_, timeline.NoteOnly()};
  ++current_;
}

void FreeEpochs::PassAll() {
  over_ = current_;
  closed_count_ = 0;
}

StreamTimeline::Tick FreeEpochs::TickOf(Epoch epoch) const {
  for (std::size_t i = 0; i < closed_count_; ++i) {
    if (closed_[i].epoch >= epoch) return closed_[i].tick;
  }
  return 0;  // The epoch is over.
}

FreeEpochs::Epoch FreeEpochs::Restart() {
  // Blocks of closed epochs and of the current one join one new epoch. Its tick
  // is later than all their former ticks.
  closed_count_ = 0;
  over_ = 0;
  current_ = 1;
  ++restarts_;
  return current_;
}

}  // namespace strata
