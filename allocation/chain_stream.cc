#include "strata/allocation/chain_stream.h"

#include <glog/logging.h>

namespace strata {

Status ChainStream::Synchronize() noexcept {
  if (device_ == nullptr || retired()) return Status::kSuccess;
  Status status = device_->StreamSynchronize(stream_);
  if (status == Status::kSuccess) return status;
  // A stream destroyed without notice, or a passing fault: the device's own
  // synchronisation covers its work too (cuda_semantics.md M9).
  LOG(ERROR) << "stream " << stream_.uid << ": cannot synchronise ("
             << ToString(status) << "); waiting for the device";
  return device_->Synchronize();
}

bool ChainStream::IsDone() noexcept {
  if (device_ == nullptr || retired()) return true;
  return device_->StreamQuery(stream_) == Status::kSuccess;
}

}  // namespace strata
