#ifndef STRATA_PLATFORM_SIM_FAULTS_CAPACITY_STEPS_H_
#define STRATA_PLATFORM_SIM_FAULTS_CAPACITY_STEPS_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "strata/platform/calls/device_call.h"

namespace strata::sim {

// Another process allocates memory of a device, or frees some, just before the
// `nth` call of one kind.
struct CapacityStep {
  DeviceCall call = DeviceCall::kMemAlloc;
  std::uint64_t nth = 0;         // counted on each device, from 1
  std::uint64_t take_bytes = 0;  // exactly one of the two sizes is not 0
  std::uint64_t give_bytes = 0;
  int device = -1;  // an ordinal; -1: every device
};

// Parses steps from text:
//
//   steps  = [ step { ";" step } [ ";" ] ]
//   step   = call ":" option { "," option }
//   call   = a name in device_calls.def
//   option = "nth=" N | "take=" size | "give=" size | "device=" ordinal
//
// for example "mem_alloc:nth=100,take=10GiB;mem_alloc:nth=200,give=10GiB". Each
// step has nth, and one of take and give. Spaces are not allowed.
//
// Errors: std::invalid_argument that names the flag strata_sim_capacity_steps
//   and the wrong part of the text.
std::vector<CapacityStep> ParseCapacitySteps(const std::string& text);

// Returns the steps of one device that are due.
//
// Threads: any thread; calls are numbered in the order of Next().
// Cost: one load while there are no steps.
class CapacitySchedule {
 public:
  explicit CapacitySchedule(int device) : device_(device) {}

  // Ignores a step for another device.
  void Add(const CapacityStep& step);

  // Calls `apply(step)` for each step that is due before this call.
  template <class Apply>
  void Next(DeviceCall call, Apply apply) {
    if (!armed_.load(std::memory_order_acquire)) return;
    for (const CapacityStep& step : Due(call)) apply(step);
  }

 private:
  struct Pending {
    CapacityStep step;
    std::uint64_t calls = 0;  // of its kind since it was added
  };

  std::vector<CapacityStep> Due(DeviceCall call);

  const int device_;
  std::atomic<bool> armed_{false};  // true if pending_ has steps
  std::mutex mutex_;
  std::vector<Pending> pending_;  // guarded by mutex_
};

}  // namespace strata::sim

namespace strata {

using sim::CapacityStep;

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_FAULTS_CAPACITY_STEPS_H_
