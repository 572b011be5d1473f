#ifndef STRATA_PLATFORM_SIM_GRAPHS_CAPTURE_SET_H_
#define STRATA_PLATFORM_SIM_GRAPHS_CAPTURE_SET_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "strata/platform/calls/device_call.h"
#include "strata/platform/memory_types.h"
#include "strata/platform/sim/graphs/sim_graph.h"
#include "strata/platform/status.h"
#include "strata/platform/stream.h"

namespace strata::sim {

// The captures that a call conflicts with (capture_rules.def).
enum class CaptureConflict : std::uint8_t {
  kNone,
  kDevice,
  kStream,
  kEvent,
  kSubmit,
  kAsk,
};

// Whether a call is potentially unsafe during a capture.
enum class CaptureUnsafe : std::uint8_t { kNever, kAlways, kOutside };

// A row of capture_rules.def, which explains the fields.
struct CaptureRule {
  DeviceCall call;
  CaptureConflict conflict;
  Status status;
  CaptureUnsafe unsafe;
  const char* source;
};

// The row of `call`, an entry point.
const CaptureRule& CaptureRuleOf(DeviceCall call);

// A capture in progress. The calls on its streams become nodes of a graph.
struct SimCapture {
  using StreamKey = std::pair<std::int32_t, std::uint64_t>;  // device, uid
  struct Member {
    bool blocking = false;                // ordered with the legacy stream
    std::vector<NodeIndex> dependencies;  // of the next node
  };

  std::uint64_t id = 0;
  CaptureMode mode = CaptureMode::kGlobal;
  std::uint64_t thread = 0;  // the thread that began it
  StreamKey origin;
  Graph handle;
  SimGraph* graph = nullptr;  // null after the end of the capture
  bool owns_graph = true;     // false: the caller passed the graph
  CaptureStatus status = CaptureStatus::kActive;
  std::map<StreamKey, Member> members;
  // Nodes that an update removed from the dependencies of a stream. They need
  // not be joined (cuda_semantics.md C4).
  NodeSet forgiven;
};

// The captures of a platform, and the calls that they refuse.
//
// Model: as in CUDA, see capture_rules.def. A call that invalidates a capture
//   is refused. The invalidated capture continues to refuse calls until its
//   end. It also counts as a capture for potentially unsafe calls.
// Errors: the Status of the Device entry point that each method implements.
// Threads: externally synchronised, except watches().
// Cost: Check visits each capture and its streams.
// Source: cuda_semantics.md §2.1, §2.2.
class CaptureSet {
 public:
  CaptureSet() = default;
  CaptureSet(const CaptureSet&) = delete;
  CaptureSet& operator=(const CaptureSet&) = delete;

  // True if a call may be refused at all. Any thread.
  bool watches() const { return watched_.load(std::memory_order_acquire) != 0; }

  // The operands of a call that matter to captures.
  struct Subject {
    Stream stream;  // or no stream
    Event event;    // or no event
    std::int32_t device = 0;
    std::uint64_t thread = 0;
  };
  // Returns kSuccess, or the status of the refusal. A refusal invalidates the
  // captures that it concerns.
  Status Check(const CaptureRule& rule, const Subject& subject);

  // The caller sets origin, mode, thread, handle and graph of `capture`.
  // Returns kIllegalState if the stream already captures.
  Status Begin(SimCapture capture, bool blocking,
               std::vector<NodeIndex> dependencies);
  // Returns kSuccess and the capture if this call ends it in any way. Then
  // `outcome` is kSuccess, kStreamCaptureInvalidated, kStreamCaptureUnjoined or
  // kStreamCaptureWrongThread. Otherwise returns the reason why the capture
  // continues. If `stream` is not its origin, the capture is invalidated.
  Status End(const Stream& stream, std::uint64_t thread,
             std::shared_ptr<const SimCapture>* ended, Status* outcome);
  // The capture that `stream` takes part in, or null.
  SimCapture* Find(const Stream& stream) const;
  // The capture with the origin `stream`, or null.
  SimCapture* FindBegun(const Stream& stream) const {
    SimCapture* const capture = Find(stream);
    return capture != nullptr && capture->origin == KeyOf(stream) ? capture
                                                                  : nullptr;
  }
  // The dependencies of the next node of a stream that takes part.
  static std::vector<NodeIndex>& DependenciesOf(SimCapture* capture,
                                                const Stream& stream);
  Status UpdateDependencies(const Stream& stream,
                            const std::vector<NodeIndex>& nodes, bool replace);

  // Records `event` in a stream that takes part.
  Status RecordEvent(Event event, const Stream& stream);
  // `event` was recorded outside captures, or destroyed.
  void ForgetEvent(Event event);
  // True if `event` was last recorded in a capture.
  bool IsCaptured(Event event) const { return events_.count(event.value) != 0; }
  // `stream` waits for `event`; the stream or the event belongs to a capture.
  // The stream joins that capture or stays in it. A wait for an event that was
  // never recorded succeeds.
  Status Wait(const Stream& stream, bool blocking, Event event,
              bool is_recorded);

  void Invalidate(SimCapture* capture) {
    capture->status = CaptureStatus::kInvalidated;
  }
  // Invalidates the captures that `device` takes part in.
  void InvalidateOn(std::int32_t device);

  // Sets the mode of the thread to `*mode`, and `*mode` to the former mode.
  void ExchangeMode(std::uint64_t thread, CaptureMode* mode);

  // Number of captures that began on `device`.
  std::uint64_t CountOf(std::int32_t device) const;

 private:
  using StreamKey = SimCapture::StreamKey;
  // The nodes after which an event was recorded.
  struct CapturedEvent {
    std::shared_ptr<SimCapture> capture;  // may have ended
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

}  // namespace strata::sim

#endif  // STRATA_PLATFORM_SIM_GRAPHS_CAPTURE_SET_H_
