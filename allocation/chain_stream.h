#ifndef STRATA_ALLOCATION_CHAIN_STREAM_H_
#define STRATA_ALLOCATION_CHAIN_STREAM_H_

#include <atomic>
#include <memory>
#include <utility>

#include "strata/platform/device.h"
#include "strata/platform/stream.h"

namespace strata {

class StreamTimeline;

// The stream a chain serves, as its layers share it: it may die before the
// chain does.
//
// Threads: any thread.
class ChainStream {
 public:
  // `device` is null for host memory, which no stream orders; otherwise it
  // outlives this object.
  ChainStream() = default;
  ChainStream(Device& device, Stream stream,
              std::shared_ptr<StreamTimeline> timeline = nullptr)
      : device_(&device), stream_(stream), timeline_(std::move(timeline)) {}
  ChainStream(const ChainStream&) = delete;
  ChainStream& operator=(const ChainStream&) = delete;
  virtual ~ChainStream() = default;

  Device* device() const { return device_; }
  // The device whose memory the chain hands out; null for host memory.
  virtual Device* memory_device() const { return device_; }
  Stream stream() const { return stream_; }
  // What is known of the stream's progress; null: nothing.
  StreamTimeline* timeline() const { return timeline_.get(); }
  bool retired() const { return retired_.load(std::memory_order_acquire); }

  // Waits until all work submitted so far is done, so that its memory may go to
  // the host or the system (cuda_semantics.md M6). At once if there is no
  // stream or it is retired. If the stream is gone, waits for the device.
  virtual Status Synchronize() noexcept;
  // Whether that wait would end at once. Never waits.
  virtual bool IsDone() noexcept;

  // The work is done and the stream is about to be destroyed.
  void Retire() { retired_.store(true, std::memory_order_release); }

 private:
  Device* device_ = nullptr;
  Stream stream_;
  std::shared_ptr<StreamTimeline> timeline_;  // null: none
  std::atomic<bool> retired_{false};
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_CHAIN_STREAM_H_
