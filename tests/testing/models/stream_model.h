#ifndef STRATA_TESTS_TESTING_MODELS_STREAM_MODEL_H_
#define STRATA_TESTS_TESTING_MODELS_STREAM_MODEL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "strata/facade/allocator_facade.h"
#include "strata/facade/graphs/capture_guard.h"
#include "strata/platform/sim/device/sim_platform.h"
#include "strata/tests/testing/choices.h"
#include "strata/tests/testing/layers/live_ranges.h"

namespace strata {

struct StreamModelOptions {
  std::string facade;  // in the format of Options::Parse
  std::uint64_t seed = 1;
  std::uint64_t device_bytes = std::uint64_t{64} << 20;
  std::string progress = "lazy";  // as PlatformOptions::sim_progress
  // Device calls sometimes fail. Requests may then fail although there is
  //   memory. No fault loses memory or objects.
  bool has_faults = false;
};

// Random correct programs of streams and graphs on a facade, under the checker.
//
// Model: the program makes the calls that the contract requires of a user, and
//   no more.
//   - A stream waits for the allocation of a block before it uses the block.
//     Before the free it is named in one of the supported ways.
//   - A graph of a pool is launched behind the earlier uses of blocks of the
//     pool.
//   - Captures begin, fork, end, are abandoned, and share pools. Their graphs
//     are launched again behind the work that they need, and may be destroyed
//     while launches are running.
//   - Streams are destroyed and created.
//   The checker must report nothing, live blocks must not overlap, the
//   statistics must match the blocks, and a request may fail only for a valid
//   reason. A difference is a test failure; its message has the seed and the
//   number of the operation.
// Threads: one.
class StreamModel {
 public:
  explicit StreamModel(const StreamModelOptions& options);
  StreamModel(const StreamModel&) = delete;
  StreamModel& operator=(const StreamModel&) = delete;
  ~StreamModel();

  void Step();
  // Frees and releases everything. Expects that nothing is left, and that
  // memory is available again.
  void Finish();

  struct Counts {
    std::uint64_t allocations = 0;
    std::uint64_t refusals = 0;
    std::uint64_t marks = 0;
    std::uint64_t launches = 0;
    std::uint64_t failed_calls = 0;  // device calls that failed
  };
  const Counts& counts() const { return counts_; }

 private:
  using Mask = std::uint32_t;  // bits are streams

  static constexpr std::size_t kStreams = 4;
  static constexpr std::size_t kMaxLive = 64;
  static constexpr std::size_t kMaxGraphs = 4;
  static constexpr std::size_t kNone = ~std::size_t{0};

  struct Capture;

  struct Live {
    AllocationPtr allocation;
    std::size_t owner = kNone;         // kNone: the stream is destroyed
    std::shared_ptr<Capture> capture;  // capture of the allocation; null: none
    Mask needs = 0;    // streams that must be named before the free
    Mask ordered = 0;  // streams that follow the allocation
    Event ready;       // recorded at the allocation
    // Graphs that use it; it must outlive them.
    std::vector<std::shared_ptr<Capture>> users;
  };
  struct Pool {
    GraphPoolId id = 0;
    bool prepared = false;  // by the program itself
    bool is_over = false;   // its events belong to other pools
    Event launched;         // after the pool's last launch
    bool was_launched = false;
    // Recorded in each stream after its last use of blocks of the pool, outside
    // captures.
    std::array<Event, kStreams> used;
    Mask users = 0;
  };
  struct Capture {
    std::size_t origin = 0;
    std::unique_ptr<CaptureGuard> guard;  // null after the end
    std::shared_ptr<Pool> pool;
    Graph graph;
    GraphExec exec;
  };

  std::size_t Below(std::size_t bound) { return choices_.Below(bound); }
  bool OneIn(std::size_t n) { return Below(n) == 0; }
  static Mask Bit(std::size_t stream) { return Mask{1} << stream; }
  Device& device() { return platform_->sim_device(0); }
  bool IsCapturing(std::size_t stream) const {
    return capture_of_[stream] != nullptr;
  }
  bool AnyCaptures() const;
  Live& AnyLive() { return live_[Below(live_.size())]; }
  std::string Where() const;

  // Repeats a call of the program itself until it succeeds.
  void Must(const char* name, const std::function<Status()>& call);
  Event TakeEvent();
  void GiveEvent(Event event) { free_events_.push_back(event); }
  void Record(Event event, std::size_t stream);
  void WaitFor(Event event, std::size_t stream);
  // `later` waits for the work submitted to `earlier`.
  void Order(std::size_t earlier, std::size_t later);

  void Allocate();
  void NoteRefusal(std::size_t bytes, const Failure& failure);
  void Use();
  void UseIn(Live& live, std::size_t stream);
  // Orders later launches of graphs of its pool behind this use.
  void NoteUse(const Live& live, std::size_t stream);
  // Orders `stream` behind all uses of the memory of the pool.
  void WaitForPool(const Pool& pool, std::size_t stream);
  std::shared_ptr<Pool> NewPool();
  void GiveEvents(Pool& pool);
  bool MayUse(const Live& live, std::size_t stream) const;
  void Name();
  void NameFor(Live& live, std::size_t stream);
  void Free();
  void FreeAt(std::size_t index);
  void Advance();
  void Wait();
  void ReplaceStream();
  void Begin();
  void End();
  void GiveUp(const std::shared_ptr<Capture>& capture);
  void Leave(const std::shared_ptr<Capture>& capture);
  void Launch(const std::shared_ptr<Capture>& capture);
  void Relaunch();
  void DropGraph();
  void Drop(std::size_t index);
  void Release();
  void AddFault();
  void Check();

  const StreamModelOptions options_;
  Choices choices_;
  std::shared_ptr<SimPlatform> platform_;
  std::unique_ptr<AllocatorFacade> facade_;
  std::array<Stream, kStreams> streams_;
  std::array<std::shared_ptr<Capture>, kStreams> capture_of_;
  std::vector<Live> live_;
  LiveRanges ranges_;
  std::vector<std::shared_ptr<Capture>> graphs_;  // can be launched
  std::vector<std::shared_ptr<Pool>> pools_;      // prepared by the program
  std::vector<Event> events_;
  std::vector<Event> free_events_;
  // A graph was dropped; its launches, and thus its pool, may still exist.
  bool has_dropped_ = false;
  std::uint64_t requested_bytes_ = 0;
  std::uint64_t step_ = 0;
  Counts counts_;
  std::string hazards_;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_MODELS_STREAM_MODEL_H_
