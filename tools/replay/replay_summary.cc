// The sentence below the table of a trace.

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "strata/base/size.h"
#include "strata/tools/peers/registry.h"
#include "strata/tools/replay/replay_report.h"
#include "strata/tools/terminal/table.h"

namespace strata::tools {
namespace {

using Rows = std::vector<const ReplayRow*>;

std::string Joined(std::initializer_list<std::string_view> parts) {
  std::string text;
  for (const std::string_view part : parts) text.append(part);
  return text;
}

// "a", "a and b", "a, b and c".
std::string Listed(const std::vector<std::string>& names) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text.append(i + 1 == names.size() ? " and " : ", ");
    text.append(names[i]);
  }
  return text;
}

std::string Listed(const Rows& rows) {
  std::vector<std::string> names;
  for (const ReplayRow* row : rows) names.push_back(row->Name());
  return Listed(names);
}

// "it runs", "they run".
const char* Verb(std::size_t count, const char* one, const char* several) {
  return count == 1 ? one : several;
}

// A strategy under the name that users of the original know.
std::string SwitchName(const std::string& strategy) {
  if (strategy != "peer:pytorch_expandable") return strategy;
  return "PyTorch's expandable_segments:True (peer:pytorch_expandable)";
}

// ", 12.3 % less than `name` (866.0 MiB)", of `bytes` beside `other` bytes; or
// ", 4.5 times `name` (3.0 MiB)".
std::string Compared(std::uint64_t bytes, std::uint64_t other,
                     const std::string& name) {
  if (other == 0) return "";
  if (bytes == other) return ", as much as " + name;
  const double ratio = static_cast<double>(bytes) / static_cast<double>(other);
  const std::string of_name = Joined({name, " (", HumanBytes(other), ")"});
  if (ratio >= 2) return Joined({", ", Fixed(ratio, 1), " times ", of_name});
  const double percent = 100 * (ratio - 1);
  return Joined({", ", Fixed(std::abs(percent), 1),
                 percent < 0 ? " % less than " : " % more than ", of_name});
}

// The value by which rows are compared.
std::uint64_t NeedOf(const ReplayRow& row) {
  return row.fit ? row.fit->capacity_bytes : row.result.peak_reserved_bytes;
}

bool NeedsLess(const ReplayRow* a, const ReplayRow* b) {
  return NeedOf(*a) < NeedOf(*b);
}

class Sentence {
 public:
  explicit Sentence(const TraceReport& report)
      : report_(report), trace_(report.trace) {
    for (const ReplayRow& row : report.rows) {
      if (row.is_recorded) continue;
      rows_.push_back(&row);
      (ServesAll(row.result) ? serving_ : failing_).push_back(&row);
    }
  }

  std::string Text() const {
    if (rows_.empty()) return "No strategy was replayed.";
    const std::string text = trace_.tries != 0  ? WithRecordedFailure()
                             : failing_.empty() ? AllRun()
                                                : SomeFail();
    return report_.has_limit && HasPeer() ? text + " No flag limits a peer."
                                          : text;
  }

 private:
  bool HasPeer() const {
    return std::any_of(rows_.begin(), rows_.end(), [](const ReplayRow* row) {
      return peers::IsPeerName(row->strategy);
    });
  }

  const char* WithinLimits() const {
    return report_.has_limit ? " and within the limits of the flags" : "";
  }

  std::string AllRun() const {
    if (rows_.size() == 1) return Best() + ".";
    if (rows_.size() == 2) return Joined({"Both run; ", Best(), "."});
    return Joined(
        {"All ", std::to_string(rows_.size()), " run; ", Best(), "."});
  }

  // "auto_growth fits on 12.0 MiB, 4.0 % less than …".
  std::string Best() const {
    const ReplayRow& best = Least();
    const std::uint64_t bytes = NeedOf(best);
    Rows all_best;
    for (const ReplayRow* row : rows_) {
      if (NeedOf(*row) == bytes) all_best.push_back(row);
    }
    const bool is_equal = all_best.size() == rows_.size();
    const std::string names =
        is_equal && rows_.size() > 1 ? "each" : Listed(all_best);
    const std::size_t count = is_equal ? 1 : all_best.size();
    const std::string text =
        Joined({names,
                best.fit ? Verb(count, " fits on ", " fit on ")
                         : Verb(count, " reserves ", " reserve "),
                is_equal ? "" : "the least, ", HumanBytes(bytes)});
    return text + Beside(best, bytes, is_equal);
  }

  // Compares the best row with the recorded program, or else with the worst
  // row. A fit is compared only with fits, because no fit was recorded.
  // `is_equal`: all rows need the same amount.
  std::string Beside(const ReplayRow& best, std::uint64_t bytes,
                     bool is_equal) const {
    const std::uint64_t recorded = trace_.recorded_peak_bytes;
    if (recorded != 0 && !best.fit) {
      return Compared(bytes, recorded, "the recorded program reserved");
    }
    if (!is_equal) {
      const ReplayRow& worst =
          **std::max_element(rows_.begin(), rows_.end(), &NeedsLess);
      return Compared(bytes, NeedOf(worst), worst.Name());
    }
    if (recorded == 0) {
      return Compared(bytes, trace_.peak_live_bytes, "the peak live");
    }
    return "; the recorded program reserved " + HumanBytes(recorded);
  }

  const ReplayRow& Least() const {
    return **std::min_element(rows_.begin(), rows_.end(), &NeedsLess);
  }

  std::string SomeFail() const {
    const ReplayRow& first = *failing_.front();
    const std::string text = Joined(
        {"On ", HumanBytes(report_.device_bytes), WithinLimits(), ", ",
         Listed(failing_), Verb(failing_.size(), " runs", " run"),
         " out of memory (", first.Name(), " at ", Trace::UnitName(trace_.unit),
         " ", std::to_string(*first.failed_line), InPass(first), ")"});
    if (serving_.empty()) return Joined({text, "; ", WayOut("runs", "run")});
    return Joined({text, "; ", Listed(serving_),
                   Verb(serving_.size(), " runs.", " run.")});
  }

  // " of pass 7"; empty for the first pass.
  static std::string InPass(const ReplayRow& row) {
    if (row.result.failed_pass <= 1) return "";
    return " of pass " + std::to_string(row.result.failed_pass);
  }

  std::string WithRecordedFailure() const {
    const std::string more =
        trace_.tries == 1
            ? ""
            : Joined({", and ", std::to_string(trace_.tries - 1),
                      Verb(trace_.tries - 1, " more time", " more times")});
    const std::string text =
        Joined({"The recorded program ran out of memory at ",
                Trace::UnitName(trace_.unit), " ",
                std::to_string(trace_.first_try_line), " with a request of ",
                HumanBytes(trace_.first_try_bytes), more,
                report_.is_recorded_device ? "; on its device of "
                                           : "; on a device of ",
                HumanBytes(report_.device_bytes),
                report_.is_default_device
                    ? " (its own size is unknown; --strata_sim_memory)"
                    : "",
                WithinLimits(), ", "});
    const std::string object = trace_.tries == 1 ? "it" : "all";
    if (serving_.empty()) {
      return Joined({text, Listed(failing_),
                     Verb(failing_.size(), " does", " do"), " not serve ",
                     object, "; ", WayOut("does", "do")});
    }
    const std::string served =
        Joined({text, Listed(serving_),
                Verb(serving_.size(), " serves ", " serve "), object});
    if (failing_.empty()) return served + ".";
    return Joined({served, ", and ", Listed(failing_),
                   Verb(failing_.size(), " does not.", " do not.")});
  }

  // The advice if no row serves every request. `one` and `several` are the verb
  // for strategies that do.
  std::string WayOut(const char* one, const char* several) const {
    if (trace_.peak_live_bytes > report_.MostLiveBytes()) {
      return Joined({"no allocator can serve it, as ",
                     HumanBytes(trace_.peak_live_bytes),
                     " are live at a time."});
    }
    if (!report_.alternatives.empty()) {
      std::vector<std::string> names;
      for (const std::string& name : report_.alternatives) {
        names.push_back(SwitchName(name));
      }
      return Joined(
          {Listed(names), " ", Verb(names.size(), one, several), "."});
    }
    const std::string none = Joined({"no other strategy ", one});
    if (report_.has_limit) return none + ".";
    const ReplayRow& least = Least();
    const std::uint64_t bytes = NeedOf(least);
    if (!least.fit || bytes <= report_.device_bytes) {
      return none + "; --fit finds the device that it fits on.";
    }
    return Joined({least.Name(), " fits on ", HumanBytes(bytes), ", ",
                   HumanBytes(bytes - report_.device_bytes), " more."});
  }

  const TraceReport& report_;
  const TraceFacts& trace_;
  Rows rows_;     // rows of replays
  Rows serving_;  // rows that served all requests
  Rows failing_;  // rows that did not
};

}  // namespace

std::string Summary(const TraceReport& report) {
  return Sentence(report).Text();
}

}  // namespace strata::tools
