#ifndef STRATA_PLATFORM_SIM_CAPTURE_SET_H_
#define STRATA_PLATFORM_SIM_CAPTURE_SET_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "strata/platform/memory_types.h"
#include "strata/platform/sim/capture_rules.h"
#include "strata/platform/sim/node_set.h"
#include "strata/platform/sim/sim_graph.h"
#include "strata/platform/status.h"
#include "strata/platform/stream.h"

namespace strata {

// A capture that is under way: what its streams have been given becomes nodes
// of a graph.
struct SimCapture {
  using StreamKey = std::pair<std::int32_t, std::uint64_t>;  // device, uid
  struct Member {
    bool blocking = false;                // ordered with the legacy stream
    std::vector<NodeIndex> dependencies;  // of what comes next
  };

  std::uint64_t id = 0;
  CaptureMode mode = CaptureMode::kGlobal;
  std::uint64_t thread = 0;  // that began it
  StreamKey origin;
  Graph handle;
  SimGraph* graph = nullptr;  // null when the capture is over
  bool owns_graph = true;     // made for the capture, not the caller's
  CaptureStatus status = CaptureStatus::kActive;
  std::map<StreamKey, Member> members;
  // Nodes that a stream no longer depends on because it was told so; nobody has
  // to join them (cuda_semantics.md C4).
  NodeSet forgiven;
};

// The captures of a platform, and which calls they refuse.
//
// Model: as CUDA's, see capture_rules.def. What a capture is invalidated by is
//   refused; it stays, and refuses on, until its end. Invalidated captures
//   count as captures for potentially unsafe calls too.
// Errors: the Status of the Device entry point that each method serves.
// Threads: externally synchronised, but for watches().
// Cost: Check looks at each capture and its streams.
// Source: cuda_semantics.md §2.1, §2.2.
class CaptureSet {
 public:
  CaptureSet() = default;
  CaptureSet(const CaptureSet&) = delete;
  CaptureSet& operator=(const CaptureSet&) = delete;

  // Whether there is anything that a call could be refused for. Any thread.
  bool watches() const { return watched_.load(std::memory_order_acquire) != 0; }

  // What a call is about, as far as captures are concerned.
  struct Subject {
    Stream stream;  // or no stream
    Event event;    // or no event
    std::int32_t device = 0;
    std::uint64_t thread = 0;
  };
  // kSuccess, or what the call is refused with; then the captures that it hits
  // are invalidated.
  Status Check(const CaptureRule& rule, const Subject& subject);

  // `capture.origin`, mode, thread, handle and graph say which. kIllegalState
  // if the stream captures already.
  Status Begin(SimCapture capture, bool blocking,
               std::vector<NodeIndex> dependencies);
  // kSuccess and the capture if this call ends it, however: `outcome` is then
  // kSuccess, kStreamCaptureInvalidated, kStreamCaptureUnjoined or
  // kStreamCaptureWrongThread. Else why it goes on; if the stream is not the
  // one it began in, it is invalidated.
  Status End(const Stream& stream, std::uint64_t thread,
             std::shared_ptr<const SimCapture>* ended, Status* outcome);
  // That `stream` takes part in, or null.
  SimCapture* Find(const Stream& stream) const;
  // That began in `stream`, or null.
  SimCapture* FindBegun(const Stream& stream) const {
    SimCapture* const capture = Find(stream);
    return capture != nullptr && capture->origin == KeyOf(stream) ? capture
                                                                  : nullptr;
  }
  // The dependencies of what comes next in a stream that takes part.
  static std::vector<NodeIndex>& DependenciesOf(SimCapture* capture,
                                                const Stream& stream);
  Status UpdateDependencies(const Stream& stream,
                            const std::vector<NodeIndex>& nodes, bool replace);

  // `event` is recorded in a stream that takes part.
  Status RecordEvent(Event event, const Stream& stream);
  // `event` was recorded elsewhere, or is gone.
  void ForgetEvent(Event event);
  // Whether `event` was last recorded in a capture.
  bool IsCaptured(Event event) const { return events_.count(event.value) != 0; }
  // `stream` waits for `event`, one of which has to do with a capture: the
  // stream joins it, or goes on in it. To wait for an event that was never
  // recorded is no error.
  Status Wait(const Stream& stream, bool blocking, Event event,
              bool is_recorded);

  void Invalidate(SimCapture* capture) {
    capture->status = CaptureStatus::kInvalidated;
  }
  // Those that `device` takes part in.
  void InvalidateOn(std::int32_t device);

  // Sets the thread's mode to `*mode` and `*mode` to what it was.
  void ExchangeMode(std::uint64_t thread, CaptureMode* mode);

  // Captures that began on `device`.
  std::uint64_t CountOf(std::int32_t device) const;

 private:
  using StreamKey = SimCapture::StreamKey;
  // What an event was recorded after.
  struct CapturedEvent {
    std::shared_ptr<SimCapture> capture;  // may be over
    std::vector<NodeIndex> nodes;
  };

  static StreamKey KeyOf(const Stream& stream) {
    return {stream.device, stream.uid};
  }
  static bool IsJoined(const SimCapture& capture);
  Status CheckConflict(const CaptureRule& rule, const Subject& subject);
  Status CheckUnsafe(const Subject& subject);
  Status CheckLegacy(std::int32_t device, bool invalidate);
  Status CheckEvent(const CaptureRule& rule, Event event);
  CaptureMode ModeOf(std::uint64_t thread) const;
  void NoteWatched();

  std::vector<std::shared_ptr<SimCapture>> captures_;  // oldest first
  std::map<StreamKey, SimCapture*> by_stream_;
  std::unordered_map<void*, CapturedEvent> events_;
  std::unordered_map<std::uint64_t, CaptureMode> modes_;  // other than kGlobal
  std::atomic<std::size_t> watched_{0};                   // captures and events
};

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_CAPTURE_SET_H_
