// The functions of AllocatorFacade for CUDA graphs.

#include <stdexcept>
#include <string>

#include "strata/allocation/error.h"
#include "strata/facade/allocator_facade.h"
#include "strata/facade/graphs/graph_pools.h"
#include "strata/facade/place_state.h"

namespace strata {

AllocatorFacade::Announcement AllocatorFacade::Announce(GraphPoolId id,
                                                        Stream stream) {
  // An earlier capture may have ended without an announcement of its end.
  for (int i = 0; i < platform_->device_count(); ++i) {
    graph_pools_->CloseEnded(platform_->device(i));
  }
  EndLostStreams();
  Announcement made;
  made.pool = graph_pools_->Prepare(id);
  try {
    made.number = graph_pools_->Announce(made.pool, stream);
  } catch (...) {
    graph_pools_->Release(made.pool);
    throw;
  }
  return made;
}

void AllocatorFacade::CaptureEnded(GraphPoolId id) {
  graph_pools_->CaptureEnded(id);
}

void AllocatorFacade::Finish(const Announcement& announcement) noexcept {
  graph_pools_->Withdraw(announcement.number);
  graph_pools_->Release(announcement.pool);
}

void AllocatorFacade::KeepForGraph(GraphPoolId id, int device, Graph graph) {
  if (!platform_->HasDevice(device)) {
    throw std::invalid_argument("there is no device " + std::to_string(device));
  }
  const Status status =
      graph_pools_->Retain(id, platform_->device(device), graph);
  if (status != Status::kSuccess) {
    throw DeviceError("graph pool " + std::to_string(id) +
                          ": the graph cannot keep its memory",
                      status);
  }
}

void AllocatorFacade::RemoveMemoryPoolOfCUDAGraph(GraphPoolId id) {
  graph_pools_->Remove(id);
}

std::size_t AllocatorFacade::GraphPoolReserved(GraphPoolId id) const {
  return graph_pools_->Get(id)->reserved_bytes();
}

}  // namespace strata
