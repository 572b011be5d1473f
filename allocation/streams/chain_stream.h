#ifndef STRATA_ALLOCATION_STREAMS_CHAIN_STREAM_H_
#define STRATA_ALLOCATION_STREAMS_CHAIN_STREAM_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "strata/allocation/hit/chain_state.h"
#include "strata/platform/device.h"
#include "strata/platform/stream.h"

namespace strata {

class StreamTimeline;

// The stream that a chain serves, and the chain's own state. The place that
// builds the chain makes it, the front of the chain owns it, and the layers of
// the chain share it. The stream may be destroyed before the chain.
//
// Model: a ChainStream belongs to one chain, which uses its state() for hits.
//   With a timeline, the last event of the stream shows when work that was
//   running at Retire() completes. Without a timeline, retire the stream only
//   after its work has completed.
// Threads: any thread.
class ChainStream : public std::enable_shared_from_this<ChainStream> {
 public:
  // `device` must outlive this object. It is null for host memory, which no
  // stream orders. A thread may own the lock of the state if `may_bias`.
  explicit ChainStream(bool may_bias = false) : state_(may_bias) {}
  ChainStream(Device& device, Stream stream,
              std::shared_ptr<StreamTimeline> timeline = nullptr,
              bool may_bias = false)
      : device_(&device),
        stream_(stream),
        timeline_(std::move(timeline)),
        state_(may_bias) {}
  ChainStream(const ChainStream&) = delete;
  ChainStream& operator=(const ChainStream&) = delete;
  virtual ~ChainStream() = default;

  Device* device() const { return device_; }
  // Device of the memory that the chain allocates; null for host memory.
  virtual Device* memory_device() const { return device_; }
  Stream stream() const { return stream_; }
  // Null: no timeline.
  StreamTimeline* timeline() const { return timeline_.get(); }
  const std::shared_ptr<StreamTimeline>& shared_timeline() const {
    return timeline_;
  }
  ChainState& state() { return state_; }
  // CaptureHold::order() of the graph pool that the chain belongs to; 0: none.
  virtual std::uint64_t own_hold() const { return 0; }
  bool retired() const { return retired_.load(std::memory_order_acquire); }

  // Waits until all work submitted so far completes, so that the memory may be
  // used by the host or released (cuda_semantics.md M6). Returns at once if
  // there is no stream. Waits for the device if the stream was destroyed.
  virtual Status Synchronize() noexcept;
  // True if Synchronize() would not wait.
  virtual bool IsDone() noexcept;

  // Announces that the stream is about to be destroyed. No more work is
  // submitted to it. Its timeline, if there is one, ends before the stream.
  void Retire() noexcept;

 private:
  Device* device_ = nullptr;
  Stream stream_;
  std::shared_ptr<StreamTimeline> timeline_;  // null: none
  // of the stream's work; written before retired_ is set
  std::uint64_t last_tick_ = 0;
  std::atomic<bool> retired_{false};
  ChainState state_;
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_STREAMS_CHAIN_STREAM_H_
