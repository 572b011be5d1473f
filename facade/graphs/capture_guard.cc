#include "strata/facade/graphs/capture_guard.h"

#include <stdexcept>
#include <string>

#include "strata/allocation/error.h"
#include "strata/allocation/streams/capture_gate.h"
#include "strata/base/log.h"
#include "strata/platform/platform.h"

namespace strata {
namespace {

Device& DeviceOf(AllocatorFacade& facade, const Stream& stream) {
  if (stream.uid == 0 || !facade.platform().HasDevice(stream.device)) {
    throw std::invalid_argument("CaptureGuard: the stream names none");
  }
  return facade.platform().device(stream.device);
}

}  // namespace

CaptureGuard::CaptureGuard(AllocatorFacade& facade, Stream stream,
                           GraphPoolId pool, CaptureMode mode)
    : facade_(facade),
      device_(DeviceOf(facade, stream)),
      stream_(stream),
      announcement_(facade.Announce(pool, stream)) {
  const Status status = device_.StreamBeginCapture(stream_, mode);
  if (status != Status::kSuccess) {
    facade_.Finish(announcement_);
    throw DeviceError("cannot capture stream " + std::to_string(stream_.uid),
                      status);
  }
  is_capturing_ = true;
}

CaptureGuard::~CaptureGuard() {
  if (!is_capturing_) return;
  Graph graph;
  // A failed capture has no graph. In both cases the stream no longer captures.
  if (device_.StreamEndCapture(stream_, &graph) == Status::kSuccess) {
    DestroyGraph(graph);
  }
  facade_.Finish(announcement_);
}

Graph CaptureGuard::End() {
  if (!is_capturing_) {
    throw std::logic_error("CaptureGuard: the capture has ended already");
  }
  Graph graph;
  const Status status = device_.StreamEndCapture(stream_, &graph);
  is_capturing_ = false;  // also after an error
  try {
    if (status == Status::kStreamCaptureWrongThread) {
      throw DeviceError(
          "a capture has to be ended by its own thread; that of "
          "stream " +
              std::to_string(stream_.uid) + " is lost",
          status);
    }
    if (status != Status::kSuccess) {
      throw DeviceError(
          "the capture of stream " + std::to_string(stream_.uid) + " failed",
          status);
    }
    facade_.KeepForGraph(pool(), device_.ordinal(), graph);
  } catch (...) {
    if (graph) DestroyGraph(graph);
    facade_.Finish(announcement_);
    throw;
  }
  facade_.Finish(announcement_);
  return graph;
}

void CaptureGuard::DestroyGraph(Graph graph) noexcept {
  // This thread may capture another stream.
  const CaptureGate::RelaxedScope relaxed(device_);
  const Status status = device_.GraphDestroy(graph);
  STRATA_LOG_IF(Error, status != Status::kSuccess)
      << "cannot destroy a graph: " << status;
}

}  // namespace strata
