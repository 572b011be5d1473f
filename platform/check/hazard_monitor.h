#ifndef STRATA_PLATFORM_CHECK_HAZARD_MONITOR_H_
#define STRATA_PLATFORM_CHECK_HAZARD_MONITOR_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "strata/platform/call_record.h"
#include "strata/platform/check/hazard_checker.h"

namespace strata {

// A HazardChecker for calls as they happen.
//
// Model: what it finds goes to stderr, the first HazardLog::kMaxKept of it,
//   unless a handler is set. The checker needs the calls in the order in which
//   they took effect: who makes them holds Hold() from before a call to after
//   Observe. Records of a platform that cannot do that (a GPU) come in an order
//   that may be wrong for calls of different threads at the same time.
// Threads: any. The handler runs in the thread whose call shows the hazard,
//   with Hold() held: it makes no call of the platform, and waits for nobody
//   who does.
class HazardMonitor {
 public:
  enum class Action : std::uint8_t { kReport, kAbort };

  // kAbort: the first hazard ends the process, after it was told.
  explicit HazardMonitor(Action action);

  void Observe(const CallRecord& record);
  std::unique_lock<std::recursive_mutex> Hold() const {
    return std::unique_lock<std::recursive_mutex>(mutex_);
  }
  // In place of stderr.
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

// Null for "off"; "report" or "abort".
//
// Errors: std::invalid_argument naming strata_sim_check_hazards.
std::shared_ptr<HazardMonitor> MakeHazardMonitor(const std::string& text);

}  // namespace strata

#endif  // STRATA_PLATFORM_CHECK_HAZARD_MONITOR_H_
