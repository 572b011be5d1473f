#ifndef STRATA_PLATFORM_SIM_FAULT_INJECTOR_H_
#define STRATA_PLATFORM_SIM_FAULT_INJECTOR_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "strata/platform/device_call.h"
#include "strata/platform/status.h"

namespace strata {

// Which calls of a simulated device fail, and how.
//
// Model: a call matches if it is `call`, is made on `device` and is about at
//   least `min_bytes`. Of the matching calls, counted on each device from when
//   the rule was added, at most one of `nth`, `every` and `probability` picks
//   those that fail; if none is set, all do.
struct FaultRule {
  DeviceCall call = DeviceCall::kMemAlloc;
  std::uint64_t nth = 0;     // from the nth match on, `count` matches in a row
  std::uint64_t every = 0;   // each match whose number `every` divides
  double probability = 0.0;  // of each match, drawn from the device's seed
  std::size_t min_bytes = 0;
  std::uint64_t count =
      0;  // failures at most; 0: one with `nth`, else no limit
  Status status = Status::kSuccess;  // kSuccess: DefaultFaultStatus(call)
  int device = -1;                   // an ordinal; -1: every device
  // The failure stays: every later call of the device returns its status, which
  // is then kIllegalAddress unless `status` says otherwise.
  bool sticky = false;
  // What the call takes longer.
  std::uint64_t delay_ns = 0;
  // The captures that the device takes part in are invalidated first.
  bool invalidate = false;
  // With `delay_ns` or `invalidate`, the call itself goes on unless `status` or
  // `sticky` is set.
};

// What happens to a call.
struct FaultEffect {
  Status status = Status::kSuccess;  // kSuccess: it is made
  bool sticky = false;
  std::uint64_t delay_ns = 0;
  bool invalidate = false;
};

// kMemoryAllocation for calls that allocate, kUnknown for the others.
Status DefaultFaultStatus(DeviceCall call);

// Reads rules from text:
//
//   rules  = [ rule { ";" rule } [ ";" ] ]
//   rule   = call [ ":" option { "," option } ]
//   call   = a name in device_calls.def
//   option = "nth=" N | "every=" N | "probability=" P | "min_bytes=" N
//          | "count=" N | "status=" (number or name) | "device=" ordinal
//          | "sticky=" (0 or 1) | "delay_ns=" N | "invalidate=" (0 or 1)
//
// for example "mem_alloc:nth=3,status=MemoryAllocation;event_record:every=2".
// N is a positive decimal number and P is in (0, 1]. Spaces are not allowed.
//
// Errors: std::invalid_argument naming the flag strata_sim_fault and the part
//   of the text that is wrong.
std::vector<FaultRule> ParseFaultRules(const std::string& text);

// Decides for one device which calls fail.
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

  // What happens to this call.
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
  std::atomic<bool> armed_{false};  // whether active_ has rules
  std::mutex mutex_;
  std::vector<ActiveRule> active_;  // guarded by mutex_
  std::uint64_t rules_added_ = 0;   // guarded by mutex_
};

}  // namespace strata

#endif  // STRATA_PLATFORM_SIM_FAULT_INJECTOR_H_
