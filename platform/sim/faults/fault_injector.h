#ifndef STRATA_PLATFORM_SIM_FAULTS_FAULT_INJECTOR_H_
#define STRATA_PLATFORM_SIM_FAULTS_FAULT_INJECTOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "strata/platform/calls/device_call.h"
#include "strata/platform/status.h"

namespace strata::sim {

// A rule that makes calls of a simulated device fail.
//
// Model: a call matches if it is `call`, is made on `device` and has at least
//   `min_bytes`. Each device counts its matches from the time the rule was
//   added. At most one of `nth`, `every` and `probability` selects the matches
//   that fail; if none is set, all fail.
struct FaultRule {
  DeviceCall call = DeviceCall::kMemAlloc;
  // The first match that fails. Later matches fail until there are `count`.
  std::uint64_t nth = 0;
  std::uint64_t every = 0;   // each match with a multiple of it as number
  double probability = 0.0;  // of each match, drawn from the device's seed
  std::size_t min_bytes = 0;
  // Maximum number of failures; 0: one with `nth`, else no limit.
  std::uint64_t count = 0;
  Status status = Status::kSuccess;  // kSuccess: DefaultFaultStatus(call)
  int device = -1;                   // an ordinal; -1: every device
  // The failure stays: every later call of the device returns its status. That
  // is kIllegalAddress unless `status` is set.
  bool sticky = false;
  // Extra time that the call takes.
  std::uint64_t delay_ns = 0;
  // Before the call, invalidates the captures that the device takes part in.
  bool invalidate = false;
  // With `delay_ns` or `invalidate`, the call itself proceeds unless `status`
  // or `sticky` is set.
};

// The effect of the rules on a call.
struct FaultEffect {
  Status status = Status::kSuccess;  // kSuccess: the call is made
  bool sticky = false;
  std::uint64_t delay_ns = 0;
  bool invalidate = false;
};

// kMemoryAllocation for calls that allocate, kUnknown for the others.
Status DefaultFaultStatus(DeviceCall call);

// Parses rules from text:
//
//   rules  = [ rule { ";" rule } [ ";" ] ]
//   rule   = call [ ":" option { "," option } ]
//   call   = a name in device_calls.def
//   option = "nth=" N | "every=" N | "probability=" P | "min_bytes=" N
//          | "count=" N | "status=" (number or name) | "device=" ordinal
//          | "sticky=" (0 or 1) | "delay_ns=" N | "invalidate=" (0 or 1)
//
// for example "mem_alloc:nth=3,status=MemoryAllocation;event_record:every=2". N
// is a positive decimal number and P is in (0, 1]. Spaces are not allowed.
//
// Errors: std::invalid_argument that names the flag strata_sim_fault and the
//   wrong part of the text.
std::vector<FaultRule> ParseFaultRules(const std::string& text);

// Selects the calls of one device that fail.
//
// Threads: any thread; matches are numbered in the order of the calls.
// Cost: one load while there are no rules.
class FaultInjector {
 public:
  FaultInjector(int device, std::uint64_t seed);

  // Errors: std::invalid_argument if more than one of nth, every and
  //   probability is set, or probability is not in [0, 1].
  void Add(const FaultRule& rule);
  void Clear();

  // Returns the effect on this call.
  FaultEffect Next(DeviceCall call, std::size_t bytes) {
    if (!armed_.load(std::memory_order_acquire)) return {};
    return NextSlow(call, bytes);
  }

 private:
  struct ActiveRule {
    FaultRule rule;
    std::uint64_t matches = 0;
    std::uint64_t failures = 0;
    std::uint64_t random_state = 0;
  };

  static bool Picks(ActiveRule* active);
  FaultEffect NextSlow(DeviceCall call, std::size_t bytes);

  const int device_;
  const std::uint64_t seed_;
  std::atomic<bool> armed_{false};  // true if active_ has rules
  std::mutex mutex_;
  std::vector<ActiveRule> active_;  // guarded by mutex_
  std::uint64_t rules_added_ = 0;   // guarded by mutex_
};

}  // namespace strata::sim

namespace strata {

using sim::FaultRule;

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_FAULTS_FAULT_INJECTOR_H_
