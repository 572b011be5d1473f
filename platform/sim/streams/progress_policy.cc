#include "strata/platform/sim/streams/progress_policy.h"

#include <stdexcept>
#include <vector>

#include "strata/platform/sim/streams/random.h"
#include "strata/platform/sim/streams/timed_progress.h"

namespace strata::sim {
namespace {

struct KindName {
  ProgressKind kind;
  const char* name;
};

constexpr KindName kKindNames[] = {
    {ProgressKind::kInline, "inline"}, {ProgressKind::kLazy, "lazy"},
    {ProgressKind::kSeeded, "seeded"}, {ProgressKind::kTimed, "timed"},
    {ProgressKind::kManual, "manual"},
};

// Separates the sequence of FreePolicy from others with the same seed.
constexpr std::uint64_t kFreeSeedOffset = 0xF4EE;

class InlineProgress final : public ProgressPolicy {
 public:
  using ProgressPolicy::ProgressPolicy;

  bool RunsAtOnce() const override { return true; }

  // Also runs work that became ready while a host function ran in another
  // thread.
  void AfterSubmit(SimLock* lock) override {
    while (SimStream* stream = FirstReady()) runner().RunFirst(stream, lock);
  }
};

class LazyProgress final : public ProgressPolicy {
 public:
  using ProgressPolicy::ProgressPolicy;

  bool PollsCountAsWaits() const override { return true; }
};

// Streams have priorities that change now and then. So both long runs of one
// stream and close interleavings occur. There are also periods in which nothing
// runs and work accumulates.
//
// Source: the idea is from PCT (Burckhardt et al., 2010).
class SeededProgress final : public ProgressPolicy {
 public:
  SeededProgress(std::uint64_t seed, StreamSet* streams, WorkRunner* runner)
      : ProgressPolicy(streams, runner), random_state_(seed) {
    NextRandom(&random_state_);
  }

  bool MovesAfterCalls() const override { return true; }

  void OnNewStream(SimStream* stream) override {
    stream->priority = NextRandom(&random_state_);
  }

  void AfterCall(std::uint64_t /*ns*/, SimLock* lock) override {
    if (streams().busy().empty()) return;
    if (quiet_calls_ > 0) {
      --quiet_calls_;
      return;
    }
    if (Draw(kCallsPerPause) == 0) quiet_calls_ = Draw(kMostQuietCalls);
    for (std::uint64_t n = Draw(kMostAfterCall + 1); n > 0; --n) {
      if (!RunSome(lock)) return;
    }
  }

  bool MoveTowards(const StreamPoint& point, SimLock* lock) override {
    // Half of the steps run work that the wait needs, so that the wait ends.
    if (Draw(2) == 0) return RunSome(lock);
    return ProgressPolicy::MoveTowards(point, lock);
  }

 private:
  static constexpr std::uint64_t kMostAfterCall = 3;
  static constexpr std::uint64_t kCallsPerPause = 4;
  static constexpr std::uint64_t kMostQuietCalls = 32;
  static constexpr std::uint64_t kStepsPerChange = 4;

  std::uint64_t Draw(std::uint64_t below) {
    return NextRandom(&random_state_) % below;
  }

  bool RunSome(SimLock* lock) {
    ready_.clear();
    for (const auto& [key, stream] : streams().busy()) {
      if (streams().IsReady(*stream)) ready_.push_back(stream);
    }
    if (ready_.empty()) return false;
    SimStream* chosen = ready_.front();
    if (Draw(kStepsPerChange) == 0) {
      chosen = ready_[Draw(ready_.size())];
      chosen->priority = NextRandom(&random_state_);
    } else {
      for (SimStream* stream : ready_) {
        if (stream->priority > chosen->priority) chosen = stream;
      }
    }
    runner().RunFirst(chosen, lock);
    return true;
  }

  std::uint64_t random_state_;
  // Number of the next calls after which nothing runs.
  std::uint64_t quiet_calls_ = 0;
  std::vector<SimStream*> ready_;  // used by RunSome only
};

}  // namespace

ProgressKind ParseProgress(const std::string& text) {
  std::string known;
  for (const KindName& row : kKindNames) {
    if (text == row.name) return row.kind;
    known += known.empty() ? "" : ", ";
    known += row.name;
  }
  throw std::invalid_argument("strata_sim_progress: '" + text +
                              "' is no progress (known: " + known + ")");
}

bool ProgressPolicy::MoveTowards(const StreamPoint& point, SimLock* lock) {
  SimStream* next = streams_->NextTowards(point);
  if (next == nullptr) return false;
  runner_->RunFirst(next, lock);
  return true;
}

SimStream* ProgressPolicy::FirstReady() const {
  SimStream* first = nullptr;
  for (const auto& [key, stream] : streams_->busy()) {
    if (!streams_->IsReady(*stream)) continue;
    if (first == nullptr ||
        stream->queue.front().number < first->queue.front().number) {
      first = stream;
    }
  }
  return first;
}

std::unique_ptr<ProgressPolicy> MakeProgress(ProgressKind kind,
                                             std::uint64_t seed,
                                             StreamSet* streams,
                                             WorkRunner* runner) {
  switch (kind) {
    case ProgressKind::kInline:
      return std::make_unique<InlineProgress>(streams, runner);
    case ProgressKind::kLazy:
      return std::make_unique<LazyProgress>(streams, runner);
    case ProgressKind::kSeeded:
      return std::make_unique<SeededProgress>(seed, streams, runner);
    case ProgressKind::kTimed:
      return std::make_unique<TimedProgress>(streams, runner);
    case ProgressKind::kManual:
      break;
  }
  return std::make_unique<ProgressPolicy>(streams, runner);
}

FreePolicy::FreePolicy(const std::string& text, std::uint64_t seed)
    : kind_(Parse(text)), random_state_(seed + kFreeSeedOffset) {}

FreePolicy::Kind FreePolicy::Parse(const std::string& text) {
  if (text == "sync") return Kind::kSync;
  if (text == "nosync") return Kind::kNoSync;
  if (text == "seeded") return Kind::kSeeded;
  throw std::invalid_argument("strata_sim_free: '" + text +
                              "' is no policy (known: sync, nosync, seeded)");
}

bool FreePolicy::Waits() {
  if (kind_ == Kind::kSeeded) return (NextRandom(&random_state_) & 1) == 0;
  return kind_ == Kind::kSync;
}

}  // namespace strata::sim
