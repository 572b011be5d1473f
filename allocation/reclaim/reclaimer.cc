#include "strata/allocation/reclaim/reclaimer.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <new>
#include <thread>

#include "strata/allocation/reclaim/call_gate.h"
#include "strata/base/log.h"

namespace strata {
namespace {

using Step = Reclaimer::Step;

// A call of this thread that concerns `of`, linked to the calls around it.
template <class Object>
class CallOn {
 public:
  explicit CallOn(const Object& of) : of_(of), outer_(innermost_) {
    innermost_ = this;
  }
  CallOn(const CallOn&) = delete;
  CallOn& operator=(const CallOn&) = delete;
  ~CallOn() { innermost_ = outer_; }

  // True if this thread is inside a call that concerns `of`.
  static bool IsInside(const Object& of) {
    const CallOn* call = innermost_;
    while (call != nullptr && &call->of_ != &of) call = call->outer_;
    return call != nullptr;
  }

 private:
  inline static thread_local constinit const CallOn* innermost_ = nullptr;

  const Object& of_;
  const CallOn* const outer_;
};

// The steps of our own layers. They run again after callbacks, because memory
// that a callback freed may be idle in the chain of another stream.
constexpr std::array kOwnSteps = {
    Step::kDrainFrees,        Step::kFlushCaches, Step::kTakeIdleChunks,
    Step::kReleaseIdleChunks, Step::kAwaitFrees,
};

// Index of the first step that can move memory freed by kAwaitFrees:
// kTakeIdleChunks.
constexpr std::size_t kFirstAfterAwait = 2;
static_assert(kOwnSteps[kFirstAfterAwait] == Step::kTakeIdleChunks);

constexpr bool GivesToSystem(Step step) {
  return step == Step::kTakeIdleChunks || step == Step::kReleaseIdleChunks;
}

// True if `failure` contains the free bytes of the system. A device reports the
// free bytes of its own memory. The host does not, and it has a share in
// managed memory.
bool KnowsFreeBytes(const Failure& failure) {
  const PlaceKind kind = failure.place.kind;
  if (failure.reason == Failure::Reason::kHostMemory) {
    return kind != PlaceKind::kHost && kind != PlaceKind::kPinned;
  }
  return kind != PlaceKind::kManaged;
}

// Bound of the wait for other threads. They need far less time, unless one of
// them waits for this thread.
constexpr int kMostYields = 1 << 20;

// Releases of memory that this thread is inside. It must not wait for them.
thread_local constinit int t_giving = 0;

// Most rounds of callbacks in a row without a change. One is not enough: a
// callback may free the last block of a chunk only in its second round.
constexpr int kMostFruitlessRounds = 2;

std::size_t AddUpTo(std::size_t a, std::size_t b) {
  return b > std::numeric_limits<std::size_t>::max() - a
             ? std::numeric_limits<std::size_t>::max()
             : a + b;
}

// Bytes left to the system or to the limit.
std::size_t RoomOf(const Failure& failure) {
  return failure.reason == Failure::Reason::kLimit
             ? failure.limit_bytes -
                   std::min(failure.limit_bytes, failure.reserved_bytes)
             : failure.device_free_bytes;
}

}  // namespace

struct Reclaimer::Registration::Entry {
  Source* source;
  Step step;
  Order order;    // in its step
  CallGate gate;  // closed after unregistration

  std::size_t Available(bool of_limit) {
    const CallGate::Pass pass(gate);
    const CallOn<Entry> call(*this);
    return pass ? source->ReclaimableBytes(of_limit) : 0;
  }
  std::size_t Reclaim(Stream stream, std::size_t bytes) {
    const CallGate::Pass pass(gate);
    const CallOn<Entry> call(*this);
    return pass ? source->Reclaim(stream, bytes) : 0;
  }
};

void Reclaimer::BeginGiving() noexcept {
  ++giving_;
  ++t_giving;
}

void Reclaimer::EndGiving(bool gave) noexcept {
  if (gave) ++given_;
  --giving_;
  --t_giving;
}

Reclaimer::Registration::Registration(std::shared_ptr<Reclaimer> reclaimer,
                                      std::shared_ptr<Entry> entry)
    : reclaimer_(std::move(reclaimer)), entry_(std::move(entry)) {}

Reclaimer::Registration& Reclaimer::Registration::operator=(
    Registration&& other) noexcept {
  Reset();
  reclaimer_ = std::move(other.reclaimer_);
  entry_ = std::move(other.entry_);
  return *this;
}

void Reclaimer::Registration::Reset() noexcept {
  if (entry_ == nullptr) return;
  {
    const std::lock_guard<std::mutex> guard(reclaimer_->mutex_);
    reclaimer_->entries_[static_cast<std::size_t>(entry_->step)].erase(
        entry_->order);
  }
  if (CallOn<Entry>::IsInside(*entry_)) {
    entry_->gate.Shut();
  } else {
    entry_->gate.Close();
  }
  entry_.reset();
  reclaimer_.reset();
}

Reclaimer::Registration Reclaimer::Register(
    const std::shared_ptr<Reclaimer>& reclaimer, Step step, Source& source,
    int priority) {
  auto entry = std::make_shared<Entry>();
  entry->source = &source;
  entry->step = step;
  {
    const std::lock_guard<std::mutex> guard(reclaimer->mutex_);
    entry->order = {-std::int64_t{priority}, ++reclaimer->registered_};
    reclaimer->entries_[static_cast<std::size_t>(step)].emplace(entry->order,
                                                                entry);
  }
  return {reclaimer, entry};
}

std::vector<std::shared_ptr<Reclaimer::Entry>> Reclaimer::Sources(
    Step step) const {
  std::vector<std::shared_ptr<Entry>> sources;
  const std::lock_guard<std::mutex> guard(mutex_);
  const auto& entries = entries_[static_cast<std::size_t>(step)];
  sources.reserve(entries.size());
  for (const auto& [order, entry] : entries) sources.push_back(entry);
  return sources;
}

std::size_t Reclaimer::IdleBytes(bool of_limit) const {
  std::size_t bytes = 0;
  for (const Step step : {Step::kTakeIdleChunks, Step::kReleaseIdleChunks}) {
    for (const auto& entry : Sources(step)) {
      bytes = AddUpTo(bytes, entry->Available(of_limit));
    }
  }
  return bytes;
}

struct Reclaimer::Supply {
  std::size_t in_use_bytes;
  std::size_t free_bytes;  // idle here, or left to the system or the limit

  // Keeps the better of both values for each number. Returns true if `now` has
  // a better one.
  bool RaiseTo(const Supply& now) {
    const bool is_better =
        now.in_use_bytes < in_use_bytes || now.free_bytes > free_bytes;
    in_use_bytes = std::min(in_use_bytes, now.in_use_bytes);
    free_bytes = std::max(free_bytes, now.free_bytes);
    return is_better;
  }
};

Reclaimer::Supply Reclaimer::SupplyFor(const Failure& failure) const {
  const bool of_limit = failure.reason == Failure::Reason::kLimit;
  return {retry_.LiveBytes(), AddUpTo(RoomOf(failure), IdleBytes(of_limit))};
}

bool Reclaimer::IsWorthReleasing(const Failure& failure) const {
  // Idle memory is not in use: its release does not help a budget.
  if (failure.reason == Failure::Reason::kBudget) return false;
  if (failure.exceeds_idle) return false;
  const bool of_limit = failure.reason == Failure::Reason::kLimit;
  const std::size_t idle = IdleBytes(of_limit);
  return of_limit || KnowsFreeBytes(failure)
             ? AddUpTo(RoomOf(failure), idle) >= failure.rounded_bytes
             : idle != 0;
}

std::size_t Reclaimer::RunStep(Step step, Stream stream, std::size_t bytes) {
  const auto sources = Sources(step);
  const bool is_release = GivesToSystem(step) || step == Step::kAskOthers;
  if (is_release) BeginGiving();
  std::size_t given = 0;
  for (const auto& entry : sources) given += entry->Reclaim(stream, bytes);
  if (given != 0) {
    ++given_;
    STRATA_VLOG(2) << "reclaim step " << static_cast<std::size_t>(step)
                   << " gave " << given << " bytes for " << bytes;
  }
  if (is_release) EndGiving(/*gave=*/false);  // given_ has counted it
  return given;
}

bool Reclaimer::RunSteps(Stream stream, Failure& failure,
                         FunctionRef<bool()> search, std::uint64_t& seen) {
  bool awaited = false;
  bool has_searched = false;
  for (std::size_t i = 0; i < kOwnSteps.size(); ++i) {
    const Step step = kOwnSteps[i];
    // Deferred frees do not count in the budget either.
    if (step == Step::kAwaitFrees &&
        (awaited || failure.reason == Failure::Reason::kBudget)) {
      break;
    }
    if (GivesToSystem(step) && !IsWorthReleasing(failure)) continue;
    if (RunStep(step, stream, failure.rounded_bytes) != 0) {
      seen = given_.load();
      if (search()) return true;
      if (!failure.MayReclaim()) return false;
      has_searched = true;
    }
    // A search completes deferred frees too, whose memory may then be idle.
    if (step == Step::kAwaitFrees && has_searched) {
      awaited = true;
      i = kFirstAfterAwait - 1;
    }
  }
  return false;
}

bool Reclaimer::RunCallbacks(Stream stream, Failure& failure,
                             FunctionRef<bool()> search, std::uint64_t& seen) {
  if (Sources(Step::kCallbacks).empty()) return false;
  const bool is_counted = callback_rounds_ >= 0;
  Supply best = {};
  if (!is_counted) best = SupplyFor(failure);
  // Number of rounds so far, or of consecutive rounds without a change.
  std::int64_t round = 0;
  const std::int64_t most =
      is_counted ? callback_rounds_ : kMostFruitlessRounds;
  do {
    bool gave = false;
    if (RunRound(stream, failure, search, seen, gave)) return true;
    if (!gave || !failure.MayReclaim()) return false;
    ++round;
    if (!is_counted && best.RaiseTo(SupplyFor(failure))) round = 0;
  } while (round < most);
  return false;
}

bool Reclaimer::RunRound(Stream stream, Failure& failure,
                         FunctionRef<bool()> search, std::uint64_t& seen,
                         bool& gave) {
  for (const auto& entry : Sources(Step::kCallbacks)) {
    if (!failure.MayReclaim()) return false;
    if (entry->Reclaim(stream, failure.rounded_bytes) == 0) continue;
    gave = true;
    seen = ++given_;
    if (search() ||
        (failure.MayReclaim() && RunSteps(stream, failure, search, seen))) {
      return true;
    }
  }
  return false;
}

bool Reclaimer::SearchBehindOthers(const Failure& failure,
                                   FunctionRef<bool()> search,
                                   std::uint64_t& seen) const {
  for (int i = 0; i < kMostYields && failure.MayReclaim(); ++i) {
    const bool done = giving_.load() == 0 || t_giving != 0;
    const std::uint64_t given = given_.load();
    if (given != seen) {
      seen = given;
      if (search()) return true;
    } else if (done) {
      return false;
    } else {
      std::this_thread::yield();
    }
  }
  return false;
}

bool Reclaimer::AskOthers(Stream stream, Failure& failure,
                          FunctionRef<bool()> search, std::uint64_t& seen) {
  // Other facades have no share in a limit of this place or in the memory of
  // the host.
  if (failure.reason != Failure::Reason::kDeviceMemory ||
      failure.during_capture) {
    return false;
  }
  // The idle memory here counts too: the own steps release it afterwards.
  std::size_t bytes =
      AddUpTo(failure.device_free_bytes, IdleBytes(/*of_limit=*/false));
  for (const auto& entry : Sources(Step::kAskOthers)) {
    bytes = AddUpTo(bytes, entry->Available(/*of_limit=*/false));
  }
  if (bytes < failure.rounded_bytes) return false;
  if (RunStep(Step::kAskOthers, stream, failure.rounded_bytes) == 0) {
    return false;
  }
  seen = given_.load();
  return search() ||
         (failure.MayReclaim() && RunSteps(stream, failure, search, seen));
}

bool Reclaimer::Retry(Stream stream, Failure& failure,
                      FunctionRef<bool()> search, std::uint64_t& seen) {
  RetryQueue::Stay stay(retry_, failure);
  retry_.SettleFrees();
  do {
    stay.BeginSearch();
    seen = given_.load();
    if (search() ||
        (failure.MayReclaim() && (RunSteps(stream, failure, search, seen) ||
                                  SearchBehindOthers(failure, search, seen) ||
                                  AskOthers(stream, failure, search, seen)))) {
      return true;
    }
  } while (stay.Wait(failure));
  failure.waited_ms = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(stay.waited())
          .count());
  return false;
}

bool Reclaimer::Climb(Stream stream, Failure& failure,
                      FunctionRef<bool()> search) noexcept {
  // A source must not start a climb on the Reclaimer that is running it: such
  // climbs would never end.
  if (CallOn<Reclaimer>::IsInside(*this)) return false;
  const CallOn<Reclaimer> climb(*this);
  try {
    std::uint64_t seen = given_.load();
    if (RunSteps(stream, failure, search, seen) ||
        RunCallbacks(stream, failure, search, seen) ||
        SearchBehindOthers(failure, search, seen) ||
        AskOthers(stream, failure, search, seen)) {
      return true;
    }
    if (!failure.MayReclaim()) return false;
    RunStep(Step::kReport, stream, failure.rounded_bytes);
    return retry_.MayWait(stream, failure) &&
           Retry(stream, failure, search, seen);
  } catch (const std::bad_alloc&) {
    // No host memory to copy a list of sources or chains: nothing was changed.
    return false;
  }
}

}  // namespace strata
