// Random programs, run by the scheduler and compared with the order that
// follows edge by edge from the rules of streams and events.
#include <gtest/gtest.h>

#include <array>
#include <bitset>
#include <cstdint>
#include <mutex>
#include <ostream>
#include <random>
#include <string>
#include <vector>

#include "strata/platform/sim/streams/scheduler.h"

namespace strata::sim {
namespace {

constexpr int kOrderDevices = 2;
constexpr int kStreamsPerDevice = 5;  // legacy, two blocking, two others
constexpr int kStreams = kOrderDevices * kStreamsPerDevice;
constexpr int kEvents = 4;
constexpr int kSteps = 90;
constexpr int kNoNode = -1;

using StepSet = std::bitset<kSteps>;

bool IsLegacy(int stream) { return stream % kStreamsPerDevice == 0; }
bool IsBlocking(int stream) {
  const int index = stream % kStreamsPerDevice;
  return index == 1 || index == 2;
}
bool OnOneDevice(int a, int b) {
  return a / kStreamsPerDevice == b / kStreamsPerDevice;
}

// For each node, its predecessors. Everything that a program submits is a node,
// including records and waits.
class OrderModel {
 public:
  OrderModel() { last_.fill(kNoNode); }

  // The predecessors of a node that would be added to `stream` now.
  StepSet Before(int stream) const {
    StepSet before;
    const auto join = [&](int other) {
      const int node = last_[static_cast<std::size_t>(other)];
      if (node != kNoNode) before |= Upto(node);
    };
    join(stream);
    for (int other = 0; other < kStreams; ++other) {
      const bool legacy_rule = (IsLegacy(stream) && IsBlocking(other)) ||
                               (IsBlocking(stream) && IsLegacy(other));
      if (legacy_rule && OnOneDevice(stream, other)) join(other);
    }
    return before;
  }
  // Adds a node to `stream`, also behind `cause`, and returns it.
  int Add(int stream, int cause = kNoNode) {
    StepSet before = Before(stream);
    if (cause != kNoNode) before |= Upto(cause);
    before_.push_back(before);
    last_[static_cast<std::size_t>(stream)] =
        static_cast<int>(before_.size()) - 1;
    return static_cast<int>(before_.size()) - 1;
  }
  const StepSet& before(int node) const {
    return before_[static_cast<std::size_t>(node)];
  }

 private:
  StepSet Upto(int node) const {
    StepSet nodes = before(node);
    nodes.set(static_cast<std::size_t>(node));
    return nodes;
  }

  std::vector<StepSet> before_;       // by node
  std::array<int, kStreams> last_{};  // by stream
};

struct RecordedEvent {
  StreamSnapshot snapshot;
  int node = kNoNode;
};

class RandomOrder {
 public:
  RandomOrder(ProgressKind kind, std::uint64_t seed)
      : random_(seed), scheduler_(kind, seed) {
    for (int i = 0; i < kStreams; ++i) {
      Stream stream;
      stream.device = i / kStreamsPerDevice;
      stream.uid =
          IsLegacy(i) ? kLegacyStreamUid : static_cast<std::uint64_t>(10 + i);
      scheduler_.AddStream(stream, IsLegacy(i)     ? StreamKind::kLegacy
                                   : IsBlocking(i) ? StreamKind::kBlocking
                                                   : StreamKind::kNonBlocking);
      streams_.push_back(stream);
    }
  }

  void Run() {
    for (int step = 0; step < kSteps; ++step) {
      TakeStep();
      scheduler_.AfterCall(300, &lock_);
    }
    for (int device = 0; device < kOrderDevices; ++device) {
      scheduler_.AwaitDevice(device, &lock_);
    }
  }

  // Number of pairs of operations that the rules order.
  std::size_t ordered_pairs() const { return ordered_pairs_; }
  std::size_t wrong_verdicts() const { return wrong_verdicts_; }
  std::size_t missing_runs() const { return operations_.size() - ran_.count(); }
  std::size_t early_runs() const { return early_runs_; }

 private:
  struct SubmittedWork {
    int node;
    StreamPoint point;
  };

  int Draw(int below) {
    return static_cast<int>(random_() % static_cast<std::uint64_t>(below));
  }

  void TakeStep() {
    const int stream = Draw(kStreams);
    const int action = Draw(10);
    if (action < 5) {
      Submit(stream);
    } else if (action < 7) {
      Record(stream, &events_[static_cast<std::size_t>(Draw(kEvents))]);
    } else if (action < 9) {
      Wait(stream, events_[static_cast<std::size_t>(Draw(kEvents))]);
    } else {
      Observe(stream);
    }
  }

  void Submit(int stream) {
    const Stream& target = streams_[static_cast<std::size_t>(stream)];
    const StepSet before = model_.Before(stream);
    for (const SubmittedWork& earlier : operations_) {
      const bool expected = before.test(static_cast<std::size_t>(earlier.node));
      ordered_pairs_ += expected ? 1 : 0;
      if (scheduler_.IsBefore(earlier.point, target) != expected) {
        ++wrong_verdicts_;
      }
    }
    const int node = model_.Add(stream);
    scheduler_.Submit(
        target, static_cast<std::uint64_t>(Draw(2000)),
        [this, node] { NoteRun(node); }, &lock_);
    operations_.push_back({node, scheduler_.Last(target)});
    is_operation_.set(static_cast<std::size_t>(node));
  }

  void NoteRun(int node) {
    const StepSet needed = model_.before(node) & is_operation_;
    if ((needed & ~ran_).any()) ++early_runs_;
    ran_.set(static_cast<std::size_t>(node));
  }

  void Record(int stream, RecordedEvent* event) {
    scheduler_.Snapshot(streams_[static_cast<std::size_t>(stream)],
                        &event->snapshot);
    event->node = model_.Add(stream);
  }

  void Wait(int stream, const RecordedEvent& event) {
    scheduler_.WaitFor(streams_[static_cast<std::size_t>(stream)],
                       event.snapshot);
    model_.Add(stream, event.node);
  }

  // Waits of the host. They do not order work on the devices.
  void Observe(int stream) {
    const Stream& target = streams_[static_cast<std::size_t>(stream)];
    switch (Draw(3)) {
      case 0:
        scheduler_.AwaitStream(target, &lock_);
        break;
      case 1:
        scheduler_.Step(target, &lock_);
        break;
      default:
        scheduler_.PollStream(target, &lock_);
        break;
    }
  }

  std::mt19937_64 random_;
  std::mutex mutex_;
  SimLock lock_{mutex_};
  Scheduler scheduler_;
  std::vector<Stream> streams_;
  std::array<RecordedEvent, kEvents> events_;
  OrderModel model_;
  std::vector<SubmittedWork> operations_;
  StepSet is_operation_;
  StepSet ran_;
  std::size_t ordered_pairs_ = 0;
  std::size_t wrong_verdicts_ = 0;
  std::size_t early_runs_ = 0;
};

struct KindCase {
  ProgressKind kind;
  const char* name;

  friend std::ostream& operator<<(std::ostream& out, const KindCase& item) {
    return out << item.name;
  }
};

class SchedulerRandomTest : public testing::TestWithParam<KindCase> {};

TEST_P(SchedulerRandomTest, OrderIsThatOfTheRules) {
  std::size_t ordered_pairs = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    RandomOrder program(GetParam().kind, seed);
    program.Run();
    ASSERT_EQ(program.wrong_verdicts(), 0u) << "seed " << seed;
    ASSERT_EQ(program.early_runs(), 0u) << "seed " << seed;
    ASSERT_EQ(program.missing_runs(), 0u) << "seed " << seed;
    ordered_pairs += program.ordered_pairs();
  }
  EXPECT_GT(ordered_pairs, 10000u);
}

INSTANTIATE_TEST_SUITE_P(
    Progress, SchedulerRandomTest,
    testing::Values(KindCase{ProgressKind::kInline, "Inline"},
                    KindCase{ProgressKind::kLazy, "Lazy"},
                    KindCase{ProgressKind::kSeeded, "Seeded"},
                    KindCase{ProgressKind::kTimed, "Timed"},
                    KindCase{ProgressKind::kManual, "Manual"}),
    [](const testing::TestParamInfo<KindCase>& param) {
      return std::string(param.param.name);
    });

}  // namespace
}  // namespace strata::sim
