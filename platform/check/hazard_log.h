#ifndef STRATA_PLATFORM_CHECK_HAZARD_LOG_H_
#define STRATA_PLATFORM_CHECK_HAZARD_LOG_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "strata/platform/check/hazard_report.h"

namespace strata::check {

using HazardHandler = std::function<void(const HazardReport&)>;

// The hazards found so far.
//
// Model: one hazard for each kind and pair of records. The first kMaxKept are
//   stored; all are counted and reported to the handler.
// Threads: externally synchronised. The handler runs in the thread that finds
//   the hazard.
class HazardLog {
 public:
  static constexpr std::size_t kMaxKept = 64;

  explicit HazardLog(HazardHandler handler) : handler_(std::move(handler)) {}

  void Add(HazardReport report);
  const std::vector<HazardReport>& kept() const { return kept_; }
  std::uint64_t count() const { return count_; }

 private:
  struct Pair {
    HazardKind kind;
    std::uint64_t first;
    std::uint64_t second;

    friend bool operator==(const Pair&, const Pair&) = default;
  };

  const HazardHandler handler_;
  std::vector<HazardReport> kept_;
  std::uint64_t count_ = 0;
  std::vector<Pair> latest_;  // the pairs of the latest second record
};

}  // namespace strata::check

#endif  // STRATA_PLATFORM_CHECK_HAZARD_LOG_H_
