#include "strata/allocation/chain_stream.h"

#include <glog/logging.h>

#include "strata/allocation/streams/stream_timeline.h"

namespace strata {

Status ChainStream::Synchronize() noexcept {
  if (device_ == nullptr) return Status::kSuccess;
  if (retired()) {
    return timeline_ != nullptr ? timeline_->Await(last_tick_)
                                : Status::kSuccess;
  }
  // It would end the capture.
  if (timeline_ != nullptr && !timeline_->MayTouch()) return Status::kNotReady;
  Status status = device_->StreamSynchronize(stream_);
  if (status == Status::kSuccess) return status;
  if (timeline_ != nullptr && timeline_->during_capture()) return status;
  // A stream destroyed without notice, or a passing fault: the device's own
  // synchronisation covers its work too (cuda_semantics.md M9).
  LOG(ERROR) << "stream " << stream_.uid << ": cannot synchronise ("
             << ToString(status) << "); waiting for the device";
  return device_->Synchronize();
}

bool ChainStream::IsDone() noexcept {
  if (device_ == nullptr) return true;
  if (retired()) {
    if (timeline_ == nullptr || timeline_->IsDone(last_tick_)) return true;
    timeline_->Poll();
    return timeline_->IsDone(last_tick_);
  }
  if (timeline_ != nullptr && !timeline_->MayTouch()) return false;
  return device_->StreamQuery(stream_) == Status::kSuccess;
}

void ChainStream::Retire() noexcept {
  if (timeline_ != nullptr && !retired()) last_tick_ = timeline_->Note();
  retired_.store(true, std::memory_order_release);
}

}  // namespace strata
