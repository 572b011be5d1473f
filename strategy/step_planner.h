#ifndef STRATA_STRATEGY_STEP_PLANNER_H_
#define STRATA_STRATEGY_STEP_PLANNER_H_

#include <cstddef>
#include <cstdint>

#include "strata/allocation/allocation.h"
#include "strata/allocation/step_plan.h"
#include "strata/strategy/step_watch.h"

namespace strata {

// When a strategy follows a StepPlan: once a StepWatch saw the same step twice,
// and its memory was fetched, the step that begins next is recorded; those
// after it follow the plan, until something else happens.
//
// Model: the strategy tells of each request that a search met and of each block
//   that it joins. What a front cache serves is not among them, and what it
//   keeps differs from step to step. So where those that it sees repeat, or,
//   now and then, where they do not, it has the cache closed for a while to
//   look closer, and until its plan ends. A plan that ends soon was not worth
//   its making: then it looks away for a while, twice as long each time. One
//   that ends a little later was perhaps of a part of a step: then it looks for
//   longer ones. What was disturbed, by growth or by loans, says less: then it
//   looks again sooner, for such phases end.
// Threads: none; the strategy's lock guards it.
// Cost: as StepWatch and StepPlan.
class StepPlanner {
 public:
  // Steps after which a plan was worth its making, and after which it was one
  // of whole steps.
  static constexpr std::uint64_t kFewestSteps = 4;
  static constexpr std::uint64_t kManySteps = 64;

  // `has_cache`: whether there is a front cache to be closed.
  StepPlanner(bool is_on, bool has_cache);
  StepPlanner(const StepPlanner&) = delete;
  StepPlanner& operator=(const StepPlanner&) = delete;

  // A request is served by the plan, if it is what the plan has next.
  bool is_following() const { return state_ == State::kFollowing; }
  StepPlan& plan() { return plan_; }
  const StepPlan& plan() const { return plan_; }
  // Provide is to be called before another request is served.
  bool wants_memory() const { return state_ == State::kWanting; }
  // Requests of the step that needs it.
  StepPlan::Count takes() const {
    const StepPlan::Count takes = stride_ * watch_.step_takes();
    return takes <= StepWatch::kMostTakes ? takes : watch_.step_takes();
  }
  // Takes `memory`, or, if there is none, looks away.
  void Provide(StepPlan::Memory* memory) noexcept;
  // False if what there is without the heap is not enough.
  bool ProvideAgain(RecordSlab& slab) noexcept;

  // One of the two, or it prepares: then Prepare, before a request is searched
  // for, and NoteTake or NoteGive are to be called.
  bool is_bound() const { return state_ >= State::kFollowing; }
  // A request comes while `live` blocks are. Afterwards it may follow a plan.
  // What is not needed any more goes to `records`, here and below.
  void Prepare(std::uint64_t live, RecordList& records) noexcept;

  // A search met a request of `bytes` while `live` other blocks were; nothing
  // is followed. If true, call Turn. NoteTake says with which block.
  bool Note(std::size_t bytes, std::uint64_t live) noexcept {
    return watch_.Note(bytes, live);
  }
  void Turn(std::uint64_t live) noexcept;
  void NoteTake(Block& block, std::size_t bytes, RecordList& records) noexcept;
  // Before `block`, which was freed, is joined.
  void NoteGive(const Block& block, RecordList& records) noexcept;

  // Memory came or went, which belongs to no step: what is seen before it looks
  // the next time does not count in full. Then call End.
  void Disturb() noexcept { is_disturbed_ = true; }

  // Whether the front cache is to be closed; to be asked after all that may
  // change it: Provide, Turn, Prepare, NoteTake, NoteGive, End.
  bool sees_all() const { return state_ >= State::kLooking; }
  // The same, and nothing is followed: what is free, the lists say.
  bool is_preparing() const { return sees_all() && !is_following(); }

  // Something happens that belongs to no step; what was followed, the strategy
  // has caught up with. What is recorded, or about to be, is given up.
  void End(RecordList& records) noexcept;
  // The same where it is a request or a free that the plan does not have next.
  void Leave(RecordList& records) noexcept;

 private:
  enum class State : std::uint8_t {
    kOff,
    kWatching,  // what the front cache leaves
    kLooking,   // at all there is
    kFollowing,
    kWanting,    // memory for a plan
    kArmed,      // until a step begins
    kRecording,  // until the next one does
  };
  static constexpr std::uint32_t kLongestStride = 4;
  static constexpr std::uint32_t kMostPause = 1U << 20;
  // It looks closer for so many requests at first, and from then on, to see a
  // step twice that begins anywhere; after so many where none seems to repeat,
  // or that did not when it looked closer: at first, and at last.
  static constexpr std::uint64_t kFirstLook = 8192;
  static constexpr std::uint64_t kLongestLook = 4 * StepWatch::kMostTakes;
  static constexpr std::uint64_t kFirstWait = 4096;
  static constexpr std::uint64_t kLongestWait = std::uint64_t{1} << 22;
  // The most that a wait, and a pause, becomes by what was disturbed: looking
  // costs one request in five its front cache then, however long that lasts.
  static constexpr std::uint64_t kLongestUnsureWait = 4 * kLongestLook;
  static constexpr std::uint32_t kMostUnsurePause = 1U << 16;

  // A step that is longer than one that ended soon is looked for so long at
  // first; if there is none, the next so many that end soon are not taken for
  // parts.
  static constexpr std::uint64_t kFirstLongerLook = 8192;
  static constexpr int kShorterOnes = 8;

  State FirstState() const {
    return has_cache_ ? State::kWatching : State::kLooking;
  }
  void Look() noexcept;
  void LookForAny() noexcept;
  void Arm() noexcept;
  // Back to watching; a while later if few steps were followed.
  void Pause(std::uint64_t steps) noexcept;

  StepWatch watch_;
  StepPlan plan_;
  const bool has_cache_;
  std::uint64_t look_takes_ = kFirstLook;
  std::uint64_t wait_takes_ = kFirstWait;
  // Of watch_.past_takes(): when a look ends, or begins if none is called for.
  std::uint64_t change_at_ = kFirstWait;
  std::uint32_t pause_ = 0;
  // See StepWatch::Pause.
  std::uint32_t longer_than_ = 0;
  std::uint64_t times_ = 0;
  std::uint64_t longer_look_takes_ = kFirstLongerLook;
  int shorter_ones_ = 0;        // left of kShorterOnes
  std::uint32_t stride_ = 1;    // a plan is of so many steps
  std::uint32_t patience_ = 0;  // requests until a step has to begin
  bool is_disturbed_ = false;   // since it last looked, or paused
  State state_;
};

}  // namespace strata

#endif  // STRATA_STRATEGY_STEP_PLANNER_H_
