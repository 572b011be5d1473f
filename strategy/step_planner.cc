#include "strata/strategy/step_planner.h"

#include <algorithm>
#include <limits>

namespace strata {

StepPlanner::StepPlanner(bool is_on, bool has_cache)
    : has_cache_(has_cache), state_(is_on ? FirstState() : State::kOff) {
  if (!is_on) watch_.Pause(std::numeric_limits<std::uint32_t>::max(), 0, 0);
}

void StepPlanner::Turn(std::uint64_t live) noexcept {
  if (state_ != State::kWatching && state_ != State::kLooking) return;
  const bool repeats = watch_.Turn(live);
  const bool is_due = watch_.past_takes() >= change_at_;
  if (state_ == State::kLooking) {
    if (repeats) {
      state_ = State::kWanting;
    } else if (is_due && longer_than_ != 0) {
      LookForAny();
    } else if (is_due && has_cache_) {
      // Nothing was to be seen: less often from now on, and for longer.
      look_takes_ = kLongestLook;
      wait_takes_ = std::min(8 * wait_takes_,
                             is_disturbed_ ? kLongestUnsureWait : kLongestWait);
      Pause(kManySteps);
    }
  } else if (is_due || (repeats && wait_takes_ == kFirstWait)) {
    Look();
  }
}

void StepPlanner::LookForAny() noexcept {
  // Not now, and only now and then: it was disturbed, not a part.
  longer_look_takes_ = std::min(2 * longer_look_takes_, kLongestLook);
  shorter_ones_ = kShorterOnes;
  longer_than_ = 0;
  times_ = 0;
  Look();
}

void StepPlanner::Look() noexcept {
  state_ = State::kLooking;
  is_disturbed_ = false;
  watch_.Pause(0, longer_than_, times_);
  change_at_ = watch_.past_takes() +
               (longer_than_ != 0 ? longer_look_takes_ : look_takes_);
}

void StepPlanner::Provide(StepPlan::Memory* memory) noexcept {
  if (memory == nullptr) return Pause(/*steps=*/0);
  plan_.Use(*memory);
  Arm();
}

bool StepPlanner::ProvideAgain(RecordSlab& slab) noexcept {
  if (!plan_.UseAgain(slab, takes())) return false;
  Arm();
  return true;
}

void StepPlanner::Arm() noexcept {
  patience_ = 2 * takes();
  state_ = State::kArmed;
}

void StepPlanner::Prepare(std::uint64_t live, RecordList& records) noexcept {
  const bool may_begin = live == watch_.floor();
  if (state_ == State::kArmed) {
    if (may_begin) {
      state_ = State::kRecording;
    } else if (live < watch_.floor() || --patience_ == 0) {
      End(records);
    }
  } else if (state_ == State::kRecording && plan_.recorded() == takes()) {
    if (may_begin && plan_.Close(records)) {
      state_ = State::kFollowing;
      longer_than_ = 0;
      times_ = 0;
      look_takes_ = kFirstLook;
      wait_takes_ = kFirstWait;
      return;
    }
    // What lives from one step to the next perhaps takes turns.
    stride_ = stride_ < kLongestStride ? 2 * stride_ : 1;
    End(records);
  }
}

void StepPlanner::NoteTake(Block& block, std::size_t bytes,
                           RecordList& records) noexcept {
  if (state_ != State::kRecording) return;
  if (!plan_.NoteTake(block, bytes)) End(records);
}

void StepPlanner::NoteGive(const Block& block, RecordList& records) noexcept {
  if (state_ != State::kRecording) return;
  if (!plan_.NoteGive(block)) End(records);
}

void StepPlanner::Leave(RecordList& records) noexcept {
  if (is_following() && plan_.steps() < kManySteps) {
    if (shorter_ones_ == 0) {
      // It was perhaps a part of a longer step.
      longer_than_ = takes();
      times_ = 2 * plan_.steps() + kFewestSteps;
    } else {
      --shorter_ones_;
    }
  }
  End(records);
}

void StepPlanner::End(RecordList& records) noexcept {
  if (!is_following() && state_ < State::kArmed) return;
  const std::uint64_t steps = is_following() ? plan_.steps() : 0;
  plan_.Clear(records);
  Pause(steps);
}

void StepPlanner::Pause(std::uint64_t steps) noexcept {
  const std::uint32_t most = is_disturbed_ ? kMostUnsurePause : kMostPause;
  pause_ =
      steps < kFewestSteps ? std::min(std::max(2 * pause_, takes()), most) : 0;
  is_disturbed_ = false;
  state_ = FirstState();
  if (state_ == State::kWatching) {
    watch_.Pause(pause_, 0, 0);  // what it sees of a step is shorter
    change_at_ = watch_.past_takes() + pause_ + wait_takes_;
  } else {
    watch_.Pause(pause_, longer_than_, times_);
    change_at_ = watch_.past_takes() + pause_ + longer_look_takes_;
  }
}

}  // namespace strata
