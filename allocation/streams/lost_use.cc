#include "strata/allocation/streams/lost_use.h"

#include <optional>

#include "strata/allocation/streams/chain_stream.h"
#include "strata/base/log.h"

namespace strata {

bool AwaitOrLoseUse(Block& block, Device& device, const Stream& stream,
                    const CaptureGate* gate, const char* layer) noexcept {
  std::optional<CaptureGate::Calm> calm;
  if (gate != nullptr) calm.emplace(*gate);
  if (!calm || *calm) {
    STRATA_LOG(Error) << layer
                      << ": no host memory for a mark; waiting for stream "
                      << stream.uid << " instead";
    const Status status = ChainStream(device, stream).Synchronize();
    if (status == Status::kSuccess) return true;
    STRATA_LOG(Error) << layer << ": stream " << stream.uid
                      << " could not be waited for: " << status;
  }
  LoseUse(block);
  return false;
}

void KeepForEver(Block& block, const char* layer) noexcept {
  SetLive(block, false);
  STRATA_LOG(Error) << layer << ": there was no host memory to note who uses "
                    << block.allocation()->data() << "; it is never reused";
}

}  // namespace strata
