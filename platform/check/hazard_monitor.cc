#include "strata/platform/check/hazard_monitor.h"

#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <utility>

namespace strata::check {

HazardMonitor::HazardMonitor(Action action)
    : action_(action),
      checker_([this](const HazardReport& report) { Tell(report); }) {}

void HazardMonitor::Observe(const CallRecord& record) {
  const auto hold = Hold();
  checker_.Observe(record);
}

void HazardMonitor::SetHandler(HazardHandler handler) {
  const auto hold = Hold();
  handler_ = std::move(handler);
}

std::vector<HazardReport> HazardMonitor::hazards() const {
  const auto hold = Hold();
  return checker_.hazards();
}

std::uint64_t HazardMonitor::hazard_count() const {
  const auto hold = Hold();
  return checker_.hazard_count();
}

void HazardMonitor::Tell(const HazardReport& report) {
  if (handler_) {
    handler_(report);
  } else if (checker_.hazard_count() <= HazardLog::kMaxKept) {
    std::fprintf(stderr, "strata: hazard %llu: %s",
                 static_cast<unsigned long long>(checker_.hazard_count()),
                 ToString(report).c_str());
  }
  if (action_ == Action::kAbort) std::abort();
}

std::shared_ptr<HazardMonitor> MakeHazardMonitor(const std::string& text) {
  if (text == "off") return nullptr;
  if (text == "report") {
    return std::make_shared<HazardMonitor>(HazardMonitor::Action::kReport);
  }
  if (text == "abort") {
    return std::make_shared<HazardMonitor>(HazardMonitor::Action::kAbort);
  }
  throw std::invalid_argument("strata_sim_check_hazards: '" + text +
                              "' is no choice (known: off, report, abort)");
}

}  // namespace strata::check
