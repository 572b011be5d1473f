#include <map>
#include <set>
#include <utility>

#include "strata/tests/testing/hazards/hazard_program.h"
#include "strata/tests/testing/hazards/hazard_program_writer.h"

namespace strata {
namespace {

// Draws random calls, and omits calls that a device would refuse.
class RandomHazardProgram : public HazardProgramWriter {
 public:
  explicit RandomHazardProgram(std::uint64_t seed)
      : HazardProgramWriter(seed) {}

  std::vector<CallRecord> Write(int calls);

 private:
  bool IsCapturing(std::uint64_t stream) const {
    return members_.count(stream) != 0;
  }
  std::uint64_t Stream() { return PickOf(streams_); }
  // A stream that is not in a capture, or 0.
  std::uint64_t EagerStream();
  std::uint64_t Address();

  void Draw();
  void DrawEvent();
  void DrawWait();
  void DrawBlock();
  void DrawMemory();
  void DrawGraph();
  void EndCapture();

  std::vector<std::uint64_t> streams_;
  std::vector<std::uint64_t> events_;
  // Event to the capture of its last record; 0: none.
  std::map<std::uint64_t, int> recorded_in_;
  std::map<std::uint64_t, std::uint64_t>
      blocks_;                      // live blocks: address to bytes
  std::set<std::uint64_t> pool_;    // live allocations, by address
  std::set<std::uint64_t> memory_;  // live allocations of mem_alloc
  std::map<std::uint64_t, std::uint64_t> mapped_;  // address to handle
  std::vector<std::uint64_t> handles_;
  std::vector<std::uint64_t> execs_;
  std::set<std::uint64_t> members_;  // streams of the one capture
  std::uint64_t origin_ = 0;
  int captures_ = 0;
  bool has_legacy_ = false;
};

std::vector<CallRecord> RandomHazardProgram::Write(int calls) {
  Call(DeviceCall::kMemAlloc, kChunk, 8 * kGranule);
  Call(DeviceCall::kMallocHost, kPinned, 4 * kGranule);
  memory_.insert(kChunk);
  const std::uint64_t streams = 2 + Pick(4);
  for (std::uint64_t i = 0; i < streams; ++i) {
    streams_.push_back(CreateStream(Chance(40)));
  }
  if (Chance(40)) {
    has_legacy_ = true;
    streams_.push_back(1);
  }
  for (int i = 0; i < 4; ++i) events_.push_back(CreateEvent());
  for (int i = 0; i < 2; ++i) {
    handles_.push_back(NewHandle());
    Call(DeviceCall::kCreateMemory, handles_.back(), 4 * kGranule);
  }
  for (int i = 0; i < calls; ++i) {
    thread_ = Chance(80) ? 1 : 2;
    Draw();
  }
  thread_ = 1;
  if (origin_ != 0) EndCapture();
  return std::move(calls_);
}

void RandomHazardProgram::Draw() {
  switch (Pick(10)) {
    case 0:
      return DrawEvent();
    case 1:
    case 2:
      return DrawWait();
    case 3:
    case 4:
      return DrawBlock();
    case 5:
      return DrawMemory();
    case 6:
      return DrawGraph();
    default:
      return Use(Address(), kGranule * (1 + Pick(2)), Stream());
  }
}

std::uint64_t RandomHazardProgram::EagerStream() {
  const std::uint64_t stream = Stream();
  return IsCapturing(stream) ? 0 : stream;
}

std::uint64_t RandomHazardProgram::Address() {
  switch (Pick(8)) {
    case 0:
      return kPinned + Pick(3) * kGranule;
    case 1:
      return kPool + Pick(3) * kGranule;
    case 2:
      return kMapped + Pick(2) * kPageBytes + Pick(3) * kGranule;
    default:
      return kChunk + Pick(7) * kGranule;
  }
}

void RandomHazardProgram::DrawEvent() {
  const std::uint64_t event = PickOf(events_);
  const std::uint64_t stream = Stream();
  Record(event, stream);
  recorded_in_[event] = IsCapturing(stream) ? captures_ : 0;
}

void RandomHazardProgram::DrawWait() {
  const std::uint64_t event = PickOf(events_);
  const std::uint64_t stream = Stream();
  const int in = recorded_in_[event];
  switch (Pick(8)) {
    case 0:
      if (!IsCapturing(stream)) {
        Call(DeviceCall::kStreamSynchronize, 0, 0, 0, stream);
      }
      return;
    case 1:
      if (in == 0 || in != captures_ || origin_ == 0) {
        Call(DeviceCall::kEventSynchronize, event);
      }
      return;
    case 2:
      if (origin_ == 0 && Chance(30)) Call(DeviceCall::kSynchronize);
      return;
    case 3:
      return Call(
          Chance(50) ? DeviceCall::kHostRelease : DeviceCall::kHostAcquire,
          0x99);
    default:
      break;
  }
  if (in != 0 && in == captures_ && origin_ != 0) {
    if (stream != 1) {
      Wait(stream, event);
      members_.insert(stream);
    }
  } else if (!IsCapturing(stream)) {
    Wait(stream, event);
  }
}

void RandomHazardProgram::DrawBlock() {
  if (blocks_.empty() || Chance(50)) {
    const std::uint64_t ptr = Chance(20)   ? kPinned + Pick(3) * kGranule
                              : Chance(20) ? kMapped + Pick(2) * kPageBytes
                                           : kChunk + Pick(7) * kGranule;
    const std::uint64_t bytes = (1 + Pick(2)) * kGranule;
    for (const auto& [at, size] : blocks_) {
      if (at < ptr + bytes && ptr < at + size) return;
    }
    blocks_[ptr] = bytes;
    Call(DeviceCall::kBlockAlloc, ptr, bytes, 0, Chance(10) ? 0 : Stream());
    return;
  }
  const auto block = std::next(
      blocks_.begin(), static_cast<std::ptrdiff_t>(Pick(blocks_.size())));
  if (Chance(30)) {
    return Call(DeviceCall::kBlockMark, block->first, 0, 0, Stream());
  }
  Call(DeviceCall::kBlockFree, block->first, 0, 0, Chance(10) ? 0 : Stream());
  blocks_.erase(block);
}

void RandomHazardProgram::DrawMemory() {
  const std::uint64_t pool = kPool + Pick(3) * kGranule;
  const std::uint64_t page = kMapped + Pick(2) * kPageBytes;
  switch (Pick(4)) {
    case 0:
      if (const std::uint64_t stream = EagerStream()) {
        if (pool_.insert(pool).second) {
          Call(DeviceCall::kMallocFromPoolAsync, pool, kGranule, 1, stream);
        } else {
          pool_.erase(pool);
          Call(DeviceCall::kFreeAsync, pool, 0, 0, stream);
        }
      }
      return;
    case 1:
      if (mapped_.count(page) == 0) {
        mapped_[page] = PickOf(handles_);
        Call(DeviceCall::kMapRange, page, 4 * kGranule, mapped_[page]);
      } else if (Chance(30)) {
        mapped_.erase(page);
        Call(DeviceCall::kUnmapRange, page, 4 * kGranule);
      }
      return;
    default:
      if (!Chance(10)) return;
      if (memory_.insert(kChunk).second) {
        Call(DeviceCall::kMemAlloc, kChunk, 8 * kGranule);
      } else {
        memory_.erase(kChunk);
        Call(DeviceCall::kMemFree, kChunk);
      }
  }
}

void RandomHazardProgram::DrawGraph() {
  if (!execs_.empty() && Chance(50)) {
    if (const std::uint64_t stream = EagerStream()) {
      Call(DeviceCall::kGraphLaunch, PickOf(execs_), 0, 0, stream);
    }
    return;
  }
  if (origin_ == 0) {
    const std::uint64_t stream = Stream();
    if (stream == 1) return;
    Call(DeviceCall::kStreamBeginCapture, 0, 0, 0, stream);
    origin_ = stream;
    members_ = {stream};
    ++captures_;
  } else if (Chance(30)) {
    EndCapture();
  }
}

void RandomHazardProgram::EndCapture() {
  for (const std::uint64_t stream : members_) {
    if (stream == origin_) continue;
    const std::uint64_t event = CreateEvent();
    Record(event, stream);
    Wait(origin_, event);
  }
  const std::uint64_t graph = NewHandle();
  Call(DeviceCall::kStreamEndCapture, graph, 0, 0, origin_);
  origin_ = 0;
  members_.clear();
  execs_.push_back(NewHandle());
  Call(DeviceCall::kGraphInstantiate, execs_.back(), 0, graph);
}

}  // namespace

std::vector<CallRecord> MakeRandomProgram(std::uint64_t seed, int calls) {
  return RandomHazardProgram(seed).Write(calls);
}

}  // namespace strata
