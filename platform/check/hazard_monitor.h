#ifndef STRATA_PLATFORM_CHECK_HAZARD_MONITOR_H_
#define STRATA_PLATFORM_CHECK_HAZARD_MONITOR_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "strata/platform/calls/call_record.h"
#include "strata/platform/check/hazard_checker.h"

namespace strata::check {

// A HazardChecker for calls as they happen.
//
// Model: writes the first HazardLog::kMaxKept hazards to stderr, unless a
//   handler is set. The checker needs the calls in the order in which they took
//   effect. So the calling thread holds Hold() from before a call until after
//   Observe. A platform that cannot do that (a GPU) may report simultaneous
//   calls of different threads in the wrong order.
// Threads: any thread. The handler runs in the thread whose call shows the
//   hazard, with Hold() held. The handler must not call the platform, nor wait
//   for a thread that does.
class HazardMonitor {
 public:
  enum class Action : std::uint8_t { kReport, kAbort };

  // With kAbort the first hazard ends the process, after it was reported.
  explicit HazardMonitor(Action action);

  void Observe(const CallRecord& record);
  std::unique_lock<std::recursive_mutex> Hold() const {
    return std::unique_lock<std::recursive_mutex>(mutex_);
  }
  // Called for each hazard, instead of the output to stderr.
  void SetHandler(HazardHandler handler);

  // As HazardChecker.
  std::vector<HazardReport> hazards() const;
  std::uint64_t hazard_count() const;

 private:
  void Tell(const HazardReport& report);

  const Action action_;
  mutable std::recursive_mutex mutex_;
  HazardHandler handler_;  // guarded by mutex_
  HazardChecker checker_;  // guarded by mutex_
};

// Returns null for "off", a monitor for "report" and "abort".
//
// Errors: std::invalid_argument that names strata_sim_check_hazards.
std::shared_ptr<HazardMonitor> MakeHazardMonitor(const std::string& text);

}  // namespace strata::check

#endif  // STRATA_PLATFORM_CHECK_HAZARD_MONITOR_H_
