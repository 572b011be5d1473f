#ifndef STRATA_ALLOCATION_CHAIN_STREAM_H_
#define STRATA_ALLOCATION_CHAIN_STREAM_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "strata/platform/device.h"
#include "strata/platform/stream.h"

namespace strata {

class StreamTimeline;

// The stream a chain serves, as its layers share it: it may die before the
// chain does.
//
// Model: with a timeline, work that is under way when the stream is retired is
//   known by its last event; without one, retire it only when its work is done.
// Threads: any thread.
class ChainStream : public std::enable_shared_from_this<ChainStream> {
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
  const std::shared_ptr<StreamTimeline>& shared_timeline() const {
    return timeline_;
  }
  bool retired() const { return retired_.load(std::memory_order_acquire); }

  // Waits until all work submitted so far is done, so that its memory may go to
  // the host or the system (cuda_semantics.md M6). At once if there is no
  // stream. If the stream is gone, waits for the device.
  virtual Status Synchronize() noexcept;
  // Whether that wait would end at once. Never waits.
  virtual bool IsDone() noexcept;

  // The stream is about to be destroyed: nothing more is submitted to it. Its
  // timeline, if there is one, ends before the stream does.
  void Retire() noexcept;

 private:
  Device* device_ = nullptr;
  Stream stream_;
  std::shared_ptr<StreamTimeline> timeline_;  // null: none
  std::uint64_t last_tick_ = 0;  // of its work; written before retired_ is set
  std::atomic<bool> retired_{false};
};

}  // namespace strata

#endif  // STRATA_ALLOCATION_CHAIN_STREAM_H_
