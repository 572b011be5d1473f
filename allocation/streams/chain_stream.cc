#include "strata/allocation/streams/chain_stream.h"

#include "strata/allocation/streams/stream_timeline.h"
#include "strata/base/log.h"

namespace strata {

Status ChainStream::Synchronize() noexcept {
  if (device_ == nullptr) return Status::kSuccess;
  if (timeline_ != nullptr) {
    return retired() ? timeline_->Await(last_tick_) : timeline_->AwaitAll();
  }
  if (retired()) return Status::kSuccess;
  const Status status = device_->StreamSynchronize(stream_);
  if (status == Status::kSuccess) return status;
  // The stream was destroyed without notice, or the fault is transient. The
  // synchronisation of the device covers its work too (cuda_semantics.md M9).
  STRATA_LOG(Error) << "stream " << stream_.uid << ": cannot synchronise ("
                    << status << "); waiting for the device";
  return device_->Synchronize();
}

bool ChainStream::IsDone() noexcept {
  if (device_ == nullptr) return true;
  if (timeline_ == nullptr) {
    return retired() || device_->StreamQuery(stream_) == Status::kSuccess;
  }
  if (!retired() && !timeline_->ended()) {
    return timeline_->SeeIdle();
  }
  const StreamTimeline::Tick tick = retired() ? last_tick_ : timeline_->Note();
  if (!timeline_->IsDone(tick)) return timeline_->Poll() >= tick;
  timeline_->AcquireDone();
  return true;
}

void ChainStream::Retire() noexcept {
  if (timeline_ != nullptr && !retired()) last_tick_ = timeline_->Note();
  retired_.store(true, std::memory_order_release);
}

}  // namespace strata
