#include "strata/tests/testing/hazards/hazard_program.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "strata/tests/testing/hazards/hazard_program_writer.h"

namespace strata {
namespace {

using enum ProgramBreak;

constexpr std::uint64_t kHandOver = 0x99;  // tag of the turns of threads

class Program : public HazardProgramWriter {
 public:
  Program(std::uint64_t seed, ProgramBreak kind)
      : HazardProgramWriter(seed), kind_(kind) {}

  std::vector<CallRecord> Write();

 private:
  // A block of the toy allocator.
  struct Slot {
    std::uint64_t ptr = 0;
    std::uint64_t bytes = 0;
    std::set<std::uint64_t> users;  // streams since it was free for all
  };

  bool Breaks(ProgramBreak kind) const { return armed_ && kind == kind_; }
  std::uint64_t Stream() { return PickOf(streams_); }
  std::uint64_t OtherThan(std::uint64_t stream);

  void Open();
  void Episode();
  void BrokenEpisode();
  void TakeTurns();

  void Order(std::uint64_t before, std::uint64_t after);
  void Await(std::uint64_t stream);
  void AllocSlot(Slot* slot, std::uint64_t stream, bool wait);
  void FreeSlot(Slot* slot, std::uint64_t stream);
  void Read(Slot* slot, std::uint64_t owner, std::uint64_t stream);

  void Reuse();
  void WaitBadly(Slot* slot, std::uint64_t owner, std::uint64_t to);
  void FreeAtOnce();
  void HandOver();
  void DestroyStream();
  void UsePool();
  void Remap();
  void Alias();
  void UsePinned();
  void Capture();
  void LaunchAll(const std::vector<std::uint64_t>& execs);
  std::uint64_t CapturePrivate(const Slot* input);
  void GraphMemory();

  const ProgramBreak kind_;
  bool armed_ = false;
  std::vector<std::uint64_t> streams_;
  std::vector<Slot> slots_;
  std::vector<Slot> pinned_;
  std::uint64_t pool_used_ = 0;
  std::uint64_t private_used_ = 0;
  std::uint64_t mapped_used_ = 0;
};

void Program::Open() {
  Call(DeviceCall::kMemAlloc, kChunk, kChunkBytes);
  Call(DeviceCall::kMemAlloc, kPrivate, kChunkBytes);
  Call(DeviceCall::kMallocHost, kPinned, kChunkBytes);
  const std::uint64_t count = 2 + Pick(4);
  for (std::uint64_t i = 0; i < count; ++i) {
    streams_.push_back(CreateStream(i >= 2 && Chance(30)));
  }
  for (std::uint64_t i = 0; i < 6; ++i) {
    slots_.push_back({kChunk + i * 2 * kGranule, (1 + Pick(2)) * kGranule, {}});
  }
  for (std::uint64_t i = 0; i < 2; ++i) {
    pinned_.push_back({kPinned + i * kGranule, kGranule, {}});
  }
}

std::vector<CallRecord> Program::Write() {
  Open();
  const std::uint64_t episodes = 2 + Pick(5);
  const std::uint64_t broken = kind_ == kNone ? episodes : Pick(episodes);
  for (std::uint64_t i = 0; i < episodes; ++i) {
    if (Chance(30)) TakeTurns();
    armed_ = i == broken;
    armed_ ? BrokenEpisode() : Episode();
    armed_ = false;
  }
  return std::move(calls_);
}

void Program::Episode() {
  switch (Pick(10)) {
    case 0:
      return FreeAtOnce();
    case 1:
      return HandOver();
    case 2:
      return DestroyStream();
    case 3:
      return UsePool();
    case 4:
      return Chance(50) ? Remap() : Alias();
    case 5:
      return UsePinned();
    case 6:
      return Capture();
    case 7:
      return GraphMemory();
    default:
      return Reuse();
  }
}

void Program::BrokenEpisode() {
  switch (kind_) {
    case kEarlyFree:
      return FreeAtOnce();
    case kMissingHostEdge:
      return HandOver();
    case kStreamDestroyed:
      return DestroyStream();
    case kPoolBeforeAlloc:
    case kPoolEarlyFree:
      return UsePool();
    case kUnmapInUse:
      return Remap();
    case kAlias:
      return Alias();
    case kHostReuse:
      return UsePinned();
    case kCaptureReuse:
    case kDanglingInput:
    case kPrivateHandedOut:
    case kPoolOverlap:
    case kCapturedEvent:
      return Capture();
    case kGraphEarlyFree:
      return GraphMemory();
    default:
      return Reuse();
  }
}

std::uint64_t Program::OtherThan(std::uint64_t stream) {
  std::uint64_t other = stream;
  while (other == stream) other = Stream();
  return other;
}

// Threads run in turns. Each thread knows everything that the previous one saw.
void Program::TakeTurns() {
  Call(DeviceCall::kHostRelease, kHandOver);
  thread_ = 1 + Pick(3);
  Call(DeviceCall::kHostAcquire, kHandOver);
}

void Program::Order(std::uint64_t before, std::uint64_t after) {
  if (before == after) return;
  const std::uint64_t event = CreateEvent();
  Record(event, before);
  Wait(after, event);
  if (Chance(20)) Record(event, after);  // has no effect any more
}

// The host waits for the work in the stream.
void Program::Await(std::uint64_t stream) {
  const std::uint64_t event = CreateEvent();
  switch (Pick(4)) {
    case 0:
      return Call(DeviceCall::kStreamSynchronize, 0, 0, 0, stream);
    case 1:
      return Call(DeviceCall::kSynchronize);
    case 2:
      Record(event, stream);
      Call(DeviceCall::kEventQuery, event, 0, 0, 0, Status::kNotReady);
      return Call(DeviceCall::kEventSynchronize, event);
    default:
      Record(event, stream);
      return Call(DeviceCall::kEventQuery, event);
  }
}

void Program::AllocSlot(Slot* slot, std::uint64_t stream, bool wait) {
  for (const std::uint64_t user : slot->users) {
    if (user == stream || !wait) continue;
    Chance(60) ? Order(user, stream) : Await(user);
  }
  slot->users = {stream};
  Call(DeviceCall::kBlockAlloc, slot->ptr, slot->bytes, 0, stream);
}

void Program::FreeSlot(Slot* slot, std::uint64_t stream) {
  Call(DeviceCall::kBlockFree, slot->ptr, 0, 0, stream);
  slot->users.insert(stream);
}

// `stream` reads the data that `owner` wrote. The allocator gets a mark.
void Program::Read(Slot* slot, std::uint64_t owner, std::uint64_t stream) {
  Order(owner, stream);
  Use(slot->ptr, kGranule, stream);
  Call(DeviceCall::kBlockMark, slot->ptr, 0, 0, stream);
  slot->users.insert(stream);
}

void Program::Reuse() {
  Slot* slot = &slots_[Pick(slots_.size())];
  const std::uint64_t owner = Stream();
  AllocSlot(slot, owner, true);
  Use(slot->ptr, slot->bytes, owner);
  if (Breaks(kMissingMark)) {
    const std::uint64_t reader = OtherThan(owner);
    Order(owner, reader);
    Use(slot->ptr, kGranule, reader);
  } else if (Chance(50)) {
    Read(slot, owner, OtherThan(owner));
  }
  if (Breaks(kMissingWait) || Breaks(kStaleEvent) || Breaks(kWrongStream) ||
      Breaks(kRecordedAgain) || Breaks(kNotReady)) {
    return WaitBadly(slot, owner, OtherThan(owner));
  }
  FreeSlot(slot, owner);
  if (Breaks(kUseAfterFree)) Use(slot->ptr, slot->bytes, owner);
  if (armed_ || Chance(60)) {
    const std::uint64_t next = Chance(50) || armed_ ? owner : Stream();
    AllocSlot(slot, next, true);
    Use(slot->ptr, slot->bytes, next);
    FreeSlot(slot, next);
  }
}

void Program::WaitBadly(Slot* slot, std::uint64_t owner, std::uint64_t to) {
  const std::uint64_t event = CreateEvent();
  if (Breaks(kStaleEvent)) {
    Record(event, owner);
    Use(slot->ptr, slot->bytes, owner);
  }
  FreeSlot(slot, owner);
  if (Breaks(kWrongStream)) Record(event, to);
  if (Breaks(kRecordedAgain) || Breaks(kNotReady)) Record(event, owner);
  if (Breaks(kRecordedAgain)) Record(event, to);
  if (Breaks(kNotReady)) {
    Call(DeviceCall::kEventQuery, event, 0, 0, 0, Status::kNotReady);
  } else if (!Breaks(kMissingWait)) {
    Chance(50) ? Wait(to, event) : Call(DeviceCall::kEventSynchronize, event);
  }
  AllocSlot(slot, to, false);
  if (Chance(70)) Use(slot->ptr, slot->bytes, to);
  FreeSlot(slot, to);
}

void Program::FreeAtOnce() {
  const std::uint64_t ptr = kPool + pool_used_;
  pool_used_ += 2 * kGranule;
  Call(DeviceCall::kMemAlloc, ptr, 2 * kGranule);
  const std::uint64_t a = Stream();
  const std::uint64_t b = OtherThan(a);
  Use(ptr, kGranule, a);
  Use(ptr + kGranule, kGranule, b);
  Await(a);
  if (!Breaks(kEarlyFree)) Await(b);
  Call(DeviceCall::kMemFree, ptr);
}

void Program::HandOver() {
  const std::uint64_t ptr = kPool + pool_used_;
  pool_used_ += kGranule;
  const std::uint64_t stream = Stream();
  const std::uint64_t tag = NewHandle();
  Call(DeviceCall::kMemAlloc, ptr, kGranule);
  Use(ptr, kGranule, stream);
  Await(stream);
  Call(DeviceCall::kHostRelease, tag);
  const std::uint64_t before = std::exchange(thread_, thread_ % 3 + 1);
  if (!Breaks(kMissingHostEdge)) Call(DeviceCall::kHostAcquire, tag);
  Call(DeviceCall::kMemFree, ptr);
  thread_ = before;
}

void Program::DestroyStream() {
  Slot* slot = &slots_[Pick(slots_.size())];
  const std::uint64_t gone = CreateStream(false);
  AllocSlot(slot, gone, true);
  Use(slot->ptr, slot->bytes, gone);
  FreeSlot(slot, gone);
  const std::uint64_t next = Stream();
  if (!Breaks(kStreamDestroyed)) Order(gone, next);
  Call(DeviceCall::kStreamDestroy, 0, 0, 0, gone);
  slot->users.clear();
  if (Chance(50)) streams_.push_back(CreateStream(false));
  AllocSlot(slot, next, true);
  Use(slot->ptr, slot->bytes, next);
  FreeSlot(slot, next);
}

void Program::UsePool() {
  const std::uint64_t ptr = kPool + pool_used_;
  if (Chance(70)) pool_used_ += kGranule;  // otherwise the next one reuses it
  const std::uint64_t a = Stream();
  const std::uint64_t b = OtherThan(a);
  Call(DeviceCall::kMallocFromPoolAsync, ptr, kGranule, 1, a);
  if (!Breaks(kPoolBeforeAlloc)) Order(a, b);
  Use(ptr, kGranule, b);
  const std::uint64_t frees = Chance(50) ? a : b;
  if (!Breaks(kPoolEarlyFree)) Order(b, frees);
  Call(DeviceCall::kFreeAsync, ptr, 0, 0, Breaks(kPoolEarlyFree) ? a : frees);
}

void Program::Remap() {
  const std::uint64_t ptr = kMapped + mapped_used_;
  mapped_used_ += kPageBytes;
  const std::uint64_t first = NewHandle();
  const std::uint64_t second = NewHandle();
  const std::uint64_t stream = Stream();
  Call(DeviceCall::kCreateMemory, first, kPageBytes);
  Call(DeviceCall::kCreateMemory, second, kPageBytes);
  Call(DeviceCall::kMapRange, ptr, kPageBytes, first);
  Use(ptr + Pick(8) * kGranule, kGranule, stream);
  if (!Breaks(kUnmapInUse)) Await(stream);
  Call(DeviceCall::kUnmapRange, ptr, kPageBytes);
  Call(DeviceCall::kMapRange, ptr, kPageBytes, second);
  Use(ptr, kGranule, Stream());
}

void Program::Alias() {
  const std::uint64_t low = kMapped + mapped_used_;
  const std::uint64_t high = low + kPageBytes;
  mapped_used_ += 2 * kPageBytes;
  const std::uint64_t memory = NewHandle();
  const std::uint64_t a = Stream();
  const std::uint64_t b = OtherThan(a);
  Call(DeviceCall::kCreateMemory, memory, kPageBytes);
  Call(DeviceCall::kMapRange, low, kPageBytes, memory);
  Call(DeviceCall::kMapRange, high, kPageBytes, memory);
  Call(DeviceCall::kMemsetAsync, low, kGranule, 0, a);
  if (!Breaks(kAlias)) Order(a, b);
  Use(high, kGranule, b);
}

void Program::UsePinned() {
  Slot* slot = &pinned_[Pick(pinned_.size())];
  const std::uint64_t stream = Stream();
  Call(DeviceCall::kBlockAlloc, slot->ptr, slot->bytes, 0, stream);
  Use(slot->ptr, slot->bytes, stream);
  Call(DeviceCall::kBlockMark, slot->ptr, 0, 0, stream);
  Call(DeviceCall::kBlockFree, slot->ptr, 0, 0, stream);
  if (!Breaks(kHostReuse)) Await(stream);
  Call(DeviceCall::kBlockAlloc, slot->ptr, slot->bytes, 0, stream);
  Call(DeviceCall::kBlockFree, slot->ptr, 0, 0, stream);
}

// A graph with two blocks at one private address, and perhaps an input.
std::uint64_t Program::CapturePrivate(const Slot* input) {
  const std::uint64_t origin = streams_[0];  // these two do not block
  const std::uint64_t fork = streams_[1];
  const std::uint64_t ptr = kPrivate + private_used_;
  const std::uint64_t forked = CreateEvent();
  const std::uint64_t joined = CreateEvent();
  const std::uint64_t graph = NewHandle();
  const std::uint64_t exec = NewHandle();
  Call(DeviceCall::kStreamBeginCapture, 0, 0, 0, origin);
  if (input != nullptr) Use(input->ptr, kGranule, origin);
  const bool early = Breaks(kCaptureReuse);
  if (early) {
    Record(forked, origin);
    Wait(fork, forked);
  }
  Call(DeviceCall::kBlockAlloc, ptr, kGranule, 0, origin);
  Use(ptr, kGranule, origin);
  Call(DeviceCall::kBlockFree, ptr, 0, 0, origin);
  if (!early) {
    Record(forked, origin);
    Wait(fork, forked);
  }
  Call(DeviceCall::kBlockAlloc, ptr, kGranule, 0, fork);
  Use(ptr, kGranule, fork);
  Call(DeviceCall::kBlockFree, ptr, 0, 0, fork);
  Record(joined, fork);
  Wait(origin, joined);
  Call(DeviceCall::kStreamEndCapture, graph, 0, 0, origin);
  Call(DeviceCall::kGraphInstantiate, exec, 0, graph);
  if (Breaks(kCapturedEvent)) {
    Chance(50) ? Call(DeviceCall::kEventQuery, forked) : Wait(Stream(), joined);
  }
  return exec;
}

// Launches graphs that share memory, one after the other.
void Program::LaunchAll(const std::vector<std::uint64_t>& execs) {
  std::uint64_t last = 0;
  const std::uint64_t launches = execs.size() + Pick(3);
  for (std::uint64_t i = 0; i < launches; ++i) {
    const bool is_first = last == 0;
    std::uint64_t stream = Stream();
    if (Breaks(kPoolOverlap) && !is_first) stream = OtherThan(last);
    if (!is_first && !Breaks(kPoolOverlap)) Order(last, stream);
    Call(DeviceCall::kGraphLaunch, execs[i % execs.size()], 0, 0, stream);
    last = stream;
  }
}

void Program::Capture() {
  Slot* input = &slots_[Pick(slots_.size())];
  const std::uint64_t owner = Stream();
  AllocSlot(input, owner, true);
  Use(input->ptr, input->bytes, owner);
  Await(owner);
  const bool has_input = Breaks(kDanglingInput) || Chance(50);
  std::vector<std::uint64_t> execs{CapturePrivate(has_input ? input : nullptr)};
  if (Breaks(kPoolOverlap) || Chance(50)) {
    execs.push_back(CapturePrivate(nullptr));
  }
  if (!Breaks(kDanglingInput)) LaunchAll(execs);
  if (Breaks(kPrivateHandedOut)) {
    Call(DeviceCall::kSynchronize);
    Call(DeviceCall::kBlockAlloc, kPrivate + private_used_, kGranule, 0, owner);
    if (Chance(50)) Use(kPrivate + private_used_, kGranule, owner);
    Call(DeviceCall::kBlockFree, kPrivate + private_used_, 0, 0, owner);
    Call(DeviceCall::kGraphLaunch, execs[0], 0, 0, owner);
  }
  // The inputs of the launches may be freed when the launches are complete.
  Call(DeviceCall::kSynchronize);
  FreeSlot(input, owner);
  if (Breaks(kDanglingInput)) LaunchAll(execs);
  private_used_ += kGranule;
}

void Program::GraphMemory() {
  const std::uint64_t ptr = kPool + pool_used_;
  pool_used_ += kGranule;
  const std::uint64_t origin = streams_[0];
  const std::uint64_t fork = streams_[1];
  const std::uint64_t forked = CreateEvent();
  const std::uint64_t joined = CreateEvent();
  const std::uint64_t graph = NewHandle();
  const std::uint64_t exec = NewHandle();
  Call(DeviceCall::kStreamBeginCapture, 0, 0, 0, origin);
  Call(DeviceCall::kMallocFromPoolAsync, ptr, kGranule, 1, origin);
  Record(forked, origin);
  Wait(fork, forked);
  Use(ptr, kGranule, fork);
  Record(joined, fork);
  if (!Breaks(kGraphEarlyFree)) Wait(origin, joined);
  Call(DeviceCall::kFreeAsync, ptr, 0, 0, origin);
  if (Breaks(kGraphEarlyFree)) Wait(origin, joined);
  Call(DeviceCall::kStreamEndCapture, graph, 0, 0, origin);
  Call(DeviceCall::kGraphInstantiate, exec, 0, graph);
  Call(DeviceCall::kGraphLaunch, exec, 0, 0, Stream());
  if (Chance(50)) Call(DeviceCall::kGraphLaunch, exec, 0, 0, Stream());
}

constexpr const char* kNames[] = {"none",
                                  "missing_mark",
                                  "missing_wait",
                                  "stale_event",
                                  "wrong_stream",
                                  "recorded_again",
                                  "not_ready",
                                  "use_after_free",
                                  "early_free",
                                  "missing_host_edge",
                                  "stream_destroyed",
                                  "pool_before_alloc",
                                  "pool_early_free",
                                  "unmap_in_use",
                                  "alias",
                                  "host_reuse",
                                  "capture_reuse",
                                  "dangling_input",
                                  "private_handed_out",
                                  "pool_overlap",
                                  "graph_early_free",
                                  "captured_event"};
static_assert(std::size(kNames) == static_cast<std::size_t>(kCount));

}  // namespace

const char* ProgramBreakName(ProgramBreak kind) {
  return kNames[static_cast<std::size_t>(kind)];
}

std::vector<CallRecord> MakeProgram(std::uint64_t seed, ProgramBreak kind) {
  return Program(seed, kind).Write();
}

}  // namespace strata
