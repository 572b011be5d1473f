#ifndef STRATA_TESTS_TESTING_STREAM_MODEL_H_
#define STRATA_TESTS_TESTING_STREAM_MODEL_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "strata/facade/allocator_facade.h"
#include "strata/facade/capture_guard.h"
#include "strata/platform/sim/sim_platform.h"
#include "strata/tests/testing/choices.h"
#include "strata/tests/testing/live_ranges.h"

namespace strata {

struct StreamModelOptions {
  std::string facade;  // as Options::Parse reads them
  std::uint64_t seed = 1;
  std::uint64_t device_bytes = std::uint64_t{64} << 20;
  std::string progress = "lazy";  // as PlatformOptions::sim_progress
  // Device calls fail, now and then: requests may then be refused although
  // there is memory. No fault loses anything.
  bool has_faults = false;
};

// Random correct programs of streams and graphs on a facade, under the checker.
//
// Model: what a user has to say, and no more, is said: a stream waits for a
//   block's allocation before it uses it, and is named, by one of the ways
//   there are, before the block is freed; a graph of a pool is launched behind
//   what was done with blocks of the pool before. Captures are begun, forked,
//   ended, given up and share pools; their graphs are launched again behind
//   what they need, and go while launches are under way. Streams are destroyed
//   and made. The checker must stay silent, live blocks must not overlap, the
//   numbers must be those of the blocks, and requests are refused only for a
//   reason. A difference is a test failure whose message has the seed and the
//   operation's number.
// Threads: one.
class StreamModel {
 public:
  explicit StreamModel(const StreamModelOptions& options);
  StreamModel(const StreamModel&) = delete;
  StreamModel& operator=(const StreamModel&) = delete;
  ~StreamModel();

  void Step();
  // Frees and releases everything; nothing may be left of it, and there is
  // memory again.
  void Finish();

  struct Counts {
    std::uint64_t allocations = 0;
    std::uint64_t refusals = 0;
    std::uint64_t marks = 0;
    std::uint64_t launches = 0;
    std::uint64_t failed_calls = 0;  // of the device
  };
  const Counts& counts() const { return counts_; }

 private:
  using Mask = std::uint32_t;  // of streams

  static constexpr std::size_t kStreams = 4;
  static constexpr std::size_t kMaxLive = 64;
  static constexpr std::size_t kMaxGraphs = 4;
  static constexpr std::size_t kNone = ~std::size_t{0};

  struct Capture;

  struct Live {
    AllocationPtr allocation;
    std::size_t owner = kNone;         // kNone: the stream is gone
    std::shared_ptr<Capture> capture;  // it was allocated in; null: in none
    Mask needs = 0;    // streams that have to be named before the free
    Mask ordered = 0;  // streams that come after the allocation
    Event ready;       // recorded at the allocation
    // Graphs that use it, and that it has to outlive.
    std::vector<std::shared_ptr<Capture>> users;
  };
  struct Pool {
    GraphPoolId id = 0;
    bool prepared = false;  // by the program itself
    bool is_over = false;   // its events are others'
    Event launched;         // after the last launch of a graph of the pool
    bool was_launched = false;
    // After what each stream has done with blocks of the pool, outside.
    std::array<Event, kStreams> used;
    Mask users = 0;
  };
  struct Capture {
    std::size_t origin = 0;
    std::unique_ptr<CaptureGuard> guard;  // null: over
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

  // Makes a call of the program's own until it succeeds.
  void Must(const char* name, const std::function<Status()>& call);
  Event TakeEvent();
  void GiveEvent(Event event) { free_events_.push_back(event); }
  void Record(Event event, std::size_t stream);
  void WaitFor(Event event, std::size_t stream);
  // `later` waits for what `earlier` has been given.
  void Order(std::size_t earlier, std::size_t later);

  void Allocate();
  void NoteRefusal(std::size_t bytes, const Failure& failure);
  void Use();
  void UseIn(Live& live, std::size_t stream);
  // Graphs of its pool that are launched later come after it.
  void NoteUse(const Live& live, std::size_t stream);
  // `stream` goes on behind all that used the memory of the pool.
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
  std::vector<std::shared_ptr<Capture>> graphs_;  // that can be launched
  std::vector<std::shared_ptr<Pool>> pools_;      // prepared by the program
  std::vector<Event> events_;
  std::vector<Event> free_events_;
  // A graph went whose launches, and so its pool, may still be there.
  bool has_dropped_ = false;
  std::uint64_t requested_bytes_ = 0;
  std::uint64_t step_ = 0;
  Counts counts_;
  std::string hazards_;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_STREAM_MODEL_H_
