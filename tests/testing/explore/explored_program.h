#ifndef STRATA_TESTS_TESTING_EXPLORE_EXPLORED_PROGRAM_H_
#define STRATA_TESTS_TESTING_EXPLORE_EXPLORED_PROGRAM_H_

#include <glog/logging.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "strata/facade/allocator_facade.h"
#include "strata/facade/graphs/capture_guard.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/tests/testing/explore/explored_order.h"

namespace strata {

// The place of all explored programs, and the bytes that their work reads and
// writes at once.
inline constexpr Place kHere = DevicePlace(0);
inline constexpr std::size_t kWordBytes = 8;

// The possible next steps of a program under exploration.
enum class StepKind : std::uint8_t {
  kAlloc,     // allocates a block for `stream`
  kUse,       // work in `stream` writes the block `index`
  kMark,      // RecordStream or RecordUse of the block for `stream`
  kFree,      // frees the block
  kComplete,  // completes the next work of `stream`, silently
  kBegin,     // `stream` captures, with a new or the shared pool
  kEnd,       // ends the capture `index` and launches its graph
  kLaunch,    // launches the graph of the capture `index` again
};

// Blocks and captures are numbered in order of creation.
struct ExploredStep {
  StepKind kind = StepKind::kAlloc;
  std::uint8_t stream = 0;
  std::uint8_t index = 0;
};

// "alloc 0 in stream 1"
std::string ToString(const ExploredStep& step);

struct ExploreOptions {
  std::string facade;  // in the format of Options::Parse
  std::size_t block_bytes = std::size_t{1} << 20;
  std::uint64_t device_bytes = std::uint64_t{64} << 20;
  // Number of blocks that always fit. A request may be refused once as many
  // blocks are live or graphs hold memory. 0: no request is refused.
  std::size_t fitting_blocks = 0;
  // Streams share a strategy, so the stream of each free is part of the state.
  bool shares_strategy = false;
  // Outside captures, marks are RecordUse with an event recorded right behind
  // the last use of the block.
  bool marks_name_events = false;
  // All captures use one pool, one after another.
  bool shares_pool = false;
  std::size_t streams = 3;
  std::size_t blocks = 4;    // live at once
  std::size_t captures = 2;  // of one program
  // First steps of every program; not counted as steps.
  std::vector<ExploredStep> begin_with;
  std::string data = "backed";  // as PlatformOptions::sim_data
};

// A facade on a simulated device under the checker, and a correct program that
// runs on it step by step. The device completes work only on request.
//
// Model: the program makes the calls that the contract requires of a user, and
//   no more.
//   - A stream waits for the allocation of a block before it uses the block. It
//     does not wait for other uses.
//   - Each block is marked for the streams that use it before it is freed.
//   - A graph is launched behind the last use of the memory of its nodes. It is
//     not launched after the free of an input that no graph keeps alive.
//   - A mark that names an event is valid until the next use.
//   - Graphs that share a pool are launched one after another. Their remaining
//     blocks are used behind the last launch.
//   Enabled() lists the steps that are correct now. Unused streams are
//   interchangeable, so only the first of them takes a step.
//   After each step the checker must report nothing and no error may be logged.
//   Live blocks must not overlap, and must hold the words that their own work
//   wrote.
// Threads: one.
class ExploredProgram final : private google::LogSink {
 public:
  explicit ExploredProgram(const ExploreOptions& options);
  ExploredProgram(const ExploredProgram&) = delete;
  ExploredProgram& operator=(const ExploredProgram&) = delete;
  ~ExploredProgram() override;

  std::vector<ExploredStep> Enabled() const;
  void Do(const ExploredStep& step);
  // The state, independent of the names of streams and blocks
  // (explored_state.cc).
  std::string State();
  // Ends the captures, launches each graph again, frees and releases
  // everything, and expects that nothing is left. Must be the last call.
  void Finish();
  // Faults found so far; empty if there are none.
  const std::string& findings() const { return findings_; }
  std::uint64_t refusals() const {
    return refused_[0] + refused_[1] + refused_[2];
  }

 private:
  using Position = ExploredOrder::Position;
  using Mask = std::uint32_t;  // bits are streams or captures

  static constexpr std::size_t kMaxStreams = 3;
  static constexpr std::size_t kNone = ~std::size_t{0};
  // Events that are recorded repeatedly; all others are recorded once.
  static constexpr std::size_t kMarkEvent = 0;
  static constexpr std::size_t kLaunchEvent = 1;  // if captures share a pool
  static constexpr std::size_t kFirstEvent = 2;

  struct Life {
    AllocationPtr allocation;  // null after the free
    std::uintptr_t address = 0;
    std::size_t owner = 0;
    std::size_t capture = kNone;  // in which it was allocated
    Mask marks = 0;               // the free waits for the uses of these
    Mask marked = 0;              // streams that ever had a mark
    Mask needs = 0;               // streams that need a mark before the free
    Mask ordered = 0;             // streams that follow the allocation
    Mask held = 0;                // captures that keep it alive
    Event ready;                  // recorded at the allocation
    std::array<Position, kMaxStreams> last_use{};
    std::array<Event, kMaxStreams> used{};  // recorded behind the last use
    // Work that the mark with an event of each stream waits for; empty: no such
    // mark.
    std::array<ExploredOrder::Clock, kMaxStreams> moments;
    std::array<Position, kMaxStreams> freed_at{};
    std::vector<std::uint64_t> words;  // words that its work writes
    bool written = false;              // by work outside captures
    bool captured_use = false;
  };
  struct Work {
    Position position = 0;
    std::size_t life = kNone;     // used block, or kNone
    std::size_t capture = kNone;  // launched graph, or kNone
  };
  struct Capture {
    std::size_t origin = 0;
    Mask streams = 0;
    std::unique_ptr<CaptureGuard> guard;  // null after the end
    Graph graph;
    GraphExec exec;
    bool valid = true;  // may be launched
    std::vector<std::size_t> inputs;
    std::vector<Event> later_uses;  // uses of blocks of its pool
    Position launched_at = 0;
    std::string history;  // part of the state
  };

  class StateWriter;

  static Mask Bit(std::size_t index) { return Mask{1} << index; }
  Device& device() { return platform_->sim_device(0); }
  const Stream& stream(std::size_t index) const {
    return order_->stream(index);
  }
  bool IsCapturing(std::size_t stream) const {
    return capture_of_[stream] != kNone;
  }
  bool IsActive(std::size_t capture) const {
    return captures_[capture].guard != nullptr;
  }
  bool IsInput(const Capture& capture, std::size_t life) const;
  std::size_t LiveCount() const;

  bool MayRefuse() const;
  bool MayUse(const Life& life, std::size_t stream) const;
  bool MayMark(const Life& life, std::size_t stream) const;
  bool MayFree(std::size_t life) const;
  bool MayBegin(std::size_t stream) const;
  bool MayLaunch(const Capture& capture) const;

  void Alloc(std::size_t stream);
  void Use(std::size_t index, std::size_t stream);
  void UseCaptured(std::size_t index, std::size_t stream, std::size_t capture);
  void Mark(std::size_t index, std::size_t stream);
  bool MarkUse(Life& life, std::size_t stream);
  // Existing marks of the stream do not cover this use.
  void NoteUse(Life& life, std::size_t stream);
  void Free(std::size_t index);
  void Complete(std::size_t stream);
  void Begin(std::size_t stream);
  void End(std::size_t capture);
  void Launch(std::size_t capture);
  void JoinCapture(std::size_t stream, std::size_t capture);
  void WaitForReady(Life& life, std::size_t stream);
  void WaitForUsers(std::size_t capture);
  // Blocks still allocated in the capture may be used after the last launch
  // that `origin` submitted.
  void WaitForLaunch(std::size_t capture, std::size_t origin);
  void Note(std::size_t capture, StepKind kind, std::size_t stream,
            std::uintptr_t address);

  void EndAll();
  void FreeAll();
  void DropGraphs();
  void ReleaseAll();
  void Close();

  Event RecordNew(std::size_t stream);
  void Record(Event event, std::size_t stream);
  void WaitFor(Event event, std::size_t stream);
  std::uint64_t Word(std::uintptr_t address);
  void CheckContents(bool graphs_too);
  void send(google::LogSeverity severity, const char* full_filename,
            const char* base_filename, int line,
            const google::LogMessageTime& time, const char* message,
            std::size_t message_bytes) override;
  void Expect(bool holds, const char* what);
  void Expect(Status status, const char* call);

  const ExploreOptions& options_;
  std::shared_ptr<SimPlatform> platform_;
  std::unique_ptr<AllocatorFacade> facade_;
  std::unique_ptr<ExploredOrder> order_;
  std::vector<Event> events_;
  std::size_t next_event_ = kFirstEvent;
  ExploredOrder::Clock moment_;  // work that each mark with an event waits for
  GraphPoolId pool_ = 0;         // shared by all captures; 0: one for each
  bool has_launched_ = false;    // a graph of that pool was launched
  std::vector<Life> lives_;
  std::vector<Capture> captures_;
  std::array<std::vector<Work>, kMaxStreams> work_;
  std::array<std::size_t, kMaxStreams> capture_of_{};
  Mask used_ = 0;       // bits are streams
  Mask has_chain_ = 0;  // bits are streams
  // Number of frees of each stream, now and at the last allocation of each
  // other stream.
  std::array<std::size_t, kMaxStreams> frees_{};
  std::array<std::array<std::size_t, kMaxStreams>, kMaxStreams> frees_seen_{};
  std::uint64_t word_ = 0;
  std::array<std::uint64_t, kMaxStreams>
      refused_{};  // refused requests by stream
  std::string findings_;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_EXPLORE_EXPLORED_PROGRAM_H_
