#ifndef STRATA_PLATFORM_DEVICE_H_
#define STRATA_PLATFORM_DEVICE_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "strata/platform/calls/call_record.h"
#include "strata/platform/calls/device_call.h"
#include "strata/platform/memory_types.h"
#include "strata/platform/status.h"
#include "strata/platform/stream.h"

namespace strata {

// The capabilities of a device. Code above `platform` checks these; it never
// checks which backend it runs on.
struct Caps {
  bool mem_pools = false;       // stream-ordered pools
  bool virtual_memory = false;  // ReserveRange, CreateMemory, MapRange …
  bool share_fd = false;
  bool share_fabric = false;
  bool rdma = false;  // MemProperties::rdma: memory for network cards
  bool managed_memory = false;
  bool pinned_memory = false;
  bool capture = false;
  bool graphs = false;
  bool graph_mem_nodes = false;
  bool user_objects = false;
  bool peer_access = false;
  // CUDA's compute capability, the number before the dot. 0 if the device has
  // none or if it is unknown.
  int compute_major = 0;
  int compute_minor = 0;   // the number behind the dot
  bool simulated = false;  // nothing runs on hardware; addresses may be phantom
  // Device memory does not store the data that is written to it.
  bool phantom_memory = false;
  std::size_t map_granularity_bytes = 0;    // 0 without virtual memory
  std::size_t alloc_alignment_bytes = 256;  // of every MemAlloc result
};

// One device. It offers CUDA's vocabulary for memory, streams, events, capture
// and graphs behind one interface, so that the layers above run on any backend.
//
// Errors: every entry point returns a Status with CUDA's number and never
//   throws. On any Status but kSuccess nothing has changed and no out-parameter
//   is written. An entry point that the device lacks returns kNotSupported; the
//   call is not counted. The driver keeps no "last error".
// Threads: any thread, concurrently. Never call a Device with a lock held.
// Cost: a driver call (microseconds) unless said otherwise.
// Lifetime: owned by its Platform.
// Source: cuda_semantics.md §6.6; meanings as in the CUDA 13.0 headers.
class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  // No driver call.
  virtual int ordinal() const = 0;
  virtual const Caps& caps() const = 0;
  // Identifies the hardware behind this object: devices of one identity share
  // its memory.
  virtual std::uintptr_t identity() const {
    return reinterpret_cast<std::uintptr_t>(this);
  }
  // Number of times that `call` reached this device, refused calls included; 0
  // for an event. No driver call. Exact when no call is in flight.
  std::uint64_t CallCount(DeviceCall call) const;
  // Sets the observer; null removes it. Each call is reported to `observer`
  // after it happened, in the calling thread and with no lock held. Calls that
  // are in flight in other threads may still be reported to the previous
  // observer. No driver call.
  void SetCallObserver(CallObserver observer);
  // Adds an observer beside the one of SetCallObserver, for the life of the
  // device.
  void AddCallObserver(CallObserver observer);
  // True if there is an observer. If not, skip work that only an observer
  // needs.
  bool observed() const { return observed_.load(std::memory_order_acquire); }
  // True if AddCallObserver was called. Then also note facts that no other call
  // shows.
  bool observed_for_life() const {
    return observed_for_life_.load(std::memory_order_acquire);
  }
  // Reports an event (device_events.def) to the observers. No driver call.
  void Note(const CallRecord& event) { Observe(event); }

  // The entry points: device_calls.def, which states their rules. The bodies
  // here return kNotSupported.
#define STRATA_DEVICE_CALL(method, name, parameters, arguments, operands) \
  virtual Status method parameters;
#include "strata/platform/calls/device_calls.def"
#undef STRATA_DEVICE_CALL

  // These make no driver call.
  virtual Stream LegacyStream() = 0;
  virtual Stream PerThreadStream() = 0;
  // False if `stream` is the per-thread stream of another thread. The calling
  // thread cannot name that stream: every call on it is refused.
  bool CanName(const Stream& stream) {
    return reinterpret_cast<std::uintptr_t>(stream.handle) !=
               kPerThreadHandle ||
           stream == PerThreadStream();
  }

 protected:
  // Every implemented entry point calls this exactly once, first.
  void CountCall(DeviceCall call);
  // Every implemented entry point ends with this, with no lock held. Without an
  // observer it costs one load.
  void Observe(const CallRecord& record) {
    if (observed()) TellObserver(record);
  }

  // Reports to the observers the nodes that are operands of the next call.
  void NoteDependencies(const GraphNode* nodes, std::size_t count);

  // The clock of CallRecord::time_ns.
  virtual std::uint64_t NowNs() const;

 private:
  // First the observer of SetCallObserver, which may be empty, then the added
  // observers.
  using Observers = std::vector<CallObserver>;

  void TellObserver(CallRecord record);
  // Replaces the observers by a copy that `change` has modified.
  template <class Change>
  void ChangeObservers(Change change);

  std::array<std::atomic<std::uint64_t>, kDeviceCallCount> call_counts_{};
  std::atomic<bool> observed_{false};  // true if there is an observer
  std::atomic<bool> observed_for_life_{false};
  std::mutex observer_mutex_;
  // Null if there is no observer. Guarded by observer_mutex_.
  std::shared_ptr<const Observers> observers_;
};

}  // namespace strata

#endif  // STRATA_PLATFORM_DEVICE_H_
