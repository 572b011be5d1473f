#include "strata/platform/check/hazard_log.h"

#include <algorithm>
#include <utility>

namespace strata::check {

void HazardLog::Add(HazardReport report) {
  const Pair pair{report.kind, report.first.number, report.second.number};
  if (!latest_.empty() && latest_.back().second != pair.second) latest_.clear();
  if (std::find(latest_.begin(), latest_.end(), pair) != latest_.end()) return;
  latest_.push_back(pair);
  ++count_;
  if (handler_) handler_(report);
  if (kept_.size() < kMaxKept) kept_.push_back(std::move(report));
}

}  // namespace strata::check
