// Idle memory: its release, and callbacks before a request fails.

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "strata/allocation/diagnostics/trace_allocator.h"
#include "strata/facade/allocator_facade.h"
#include "strata/facade/chains/front.h"
#include "strata/facade/graphs/graph_pools.h"
#include "strata/facade/place_state.h"

namespace strata {
namespace {

// During its life, requests of the places that found no memory wait: memory on
// its way to the system is neither idle nor free. They search again if it gave
// some.
class Giving {
 public:
  explicit Giving(const std::vector<PlaceState*>& places) : places_(places) {
    for (PlaceState* place : places_) place->reclaimer()->BeginGiving();
  }
  Giving(const Giving&) = delete;
  Giving& operator=(const Giving&) = delete;
  ~Giving() {
    for (PlaceState* place : places_) {
      place->reclaimer()->EndGiving(gave);
    }
  }

  bool gave = false;

 private:
  const std::vector<PlaceState*>& places_;
};

}  // namespace

std::size_t AllocatorFacade::GivenBy(const std::vector<PlaceState*>& places,
                                     FunctionRef<std::size_t()> release) const {
  const auto reserved = [&] {
    std::size_t bytes = 0;
    for (PlaceState* place : places) {
      // The size of a driver's pool is a driver call.
      const CaptureGate::RelaxedScope relaxed(graph_pools_->gate(),
                                              place->device());
      bytes += place->pool()->reserved_bytes();
    }
    return bytes;
  };
  const std::size_t before = reserved();
  Giving giving(places);
  const std::size_t counted = release();
  const std::size_t given =
      std::max(counted, before - std::min(before, reserved()));
  giving.gave = given != 0;
  return given;
}

std::size_t AllocatorFacade::EmptyCache() {
  // Measure all places together: the release at one place may free memory of
  // graph pools at another.
  std::vector<PlaceState*> all;
  ForEachState([&](PlaceState& state) { all.push_back(&state); });
  return GivenBy(all, [&] {
    std::size_t bytes = 0;
    for (PlaceState* state : all) {
      if (state->has_streams()) bytes += Release(state->place());
    }
    return bytes;
  });
}

std::size_t AllocatorFacade::Compact(Place place) {
  throw std::logic_error(std::string("Compact: ") +
                         CarvingLayer(GetAllocator(place)).name() + " on " +
                         ToString(place) +
                         " cannot move memory; Release gives idle memory back");
}

std::size_t AllocatorFacade::Release(Place place) {
  PlaceState& state = Find(place);
  EndLostStreams();
  if (trace_sink_ != nullptr) trace_sink_->Released(place);
  return GivenBy({&state}, [&] {
    std::size_t bytes = 0;
    const bool has_unused = graph_pools_->AskAndSweep();
    if (graph_pools_->gate().any()) return bytes;
    // Memory that one chain releases may be lent by another: repeat until two
    // rounds in a row release nothing.
    for (int rounds = 0; rounds < 2; ++rounds) {
      const std::size_t before = bytes;
      state.ForEachFront([&](Front& front) { bytes += front.Release(); });
      if (bytes != before) rounds = -1;
    }
    // The last launch may have completed by now.
    if (has_unused) graph_pools_->AskAndSweep();
    return bytes + state.pool()->Release();
  });
}

std::size_t AllocatorFacade::Release(Place place, Stream stream) {
  Allocator& front = GetAllocator(place, stream);
  return GivenBy({&Find(place)}, [&] { return front.Release(); });
}

OutOfMemoryCallback AllocatorFacade::AddOutOfMemoryCallback(
    Place place, OutOfMemoryFunction callback, int priority) {
  return Find(place).AddCallback(std::move(callback), priority);
}

}  // namespace strata
