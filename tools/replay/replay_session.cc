#include "strata/tools/replay/replay_session.h"

#include <algorithm>
#include <cstdio>
#include <new>
#include <stdexcept>

#include "strata/allocation/error.h"
#include "strata/base/size.h"
#include "strata/facade/flags.h"
#include "strata/strategy/registry.h"
#include "strata/tools/peers/registry.h"
#include "strata/tools/readers/input_buffer.h"
#include "strata/tools/replay/replay_report.h"
#include "strata/tools/terminal/interrupt.h"
#include "strata/tools/terminal/progress.h"
#include "strata/tools/trace/trace_warnings.h"

namespace strata::tools {
namespace {

void WarnOfFailure(const ReplayRow& row) {
  if (!row.failed_line) return;
  std::fprintf(stderr, "strata: warning: %s: %s\n", row.failed_where.c_str(),
               row.result.failure.c_str());
}

// Whether a flag limits the memory that a strategy holds or allocates.
bool HasLimit(const Options& options) {
  return options.gpu_memory_limit_mb != 0 ||
         options.decorators.in_use_limit_bytes != 0 ||
         options.strategy.bfc_memory_limit_bytes != 0;
}

// The smallest limit that holds for every strategy; 0: none.
std::uint64_t LimitBytes(const Options& options) {
  const std::uint64_t held = options.gpu_memory_limit_mb << 20;
  const std::uint64_t in_use = options.decorators.in_use_limit_bytes;
  if (held == 0 || in_use == 0) return std::max(held, in_use);
  return std::min(held, in_use);
}

// Replays the traces of a request, one after another.
class ReplaySession {
 public:
  explicit ReplaySession(const ReplayRequest& request)
      : request_(request), names_(NamesOf(request_.paths)) {}

  // Returns the exit code.
  int Run() {
    const InterruptScope interrupts;
    try {
      for (std::size_t i = 0; i < request_.paths.size(); ++i) {
        RunTrace(i);
        Print(i);
        CheckInterrupt();
      }
    } catch (const Interrupted&) {
      progress_.Clear();
      if (!reports_.empty()) Print(reports_.size() - 1);
      std::fputs("strata: interrupted\n", stderr);
      was_interrupted_ = true;
    }
    if (request_.as_json) {
      std::fputs(ToJson(reports_).c_str(), stdout);
    }
    return ExitCode();
  }

 private:
  // A file that cannot be used does not affect the results of others.
  void RunTrace(std::size_t index) {
    try {
      Trace trace = Read(request_.paths[index]);
      Warn(trace);
      Replay(trace);
    } catch (const std::invalid_argument&) {
      throw;  // a wrong flag
    } catch (const std::runtime_error& error) {
      // an interrupted read may look like the end of the file
      CheckInterrupt();
      Report(error.what());
    } catch (const std::bad_alloc&) {
      Report((request_.paths[index] + ": the host is out of memory").c_str());
    }
  }

  Trace Read(const std::string& path) {
    reports_.emplace_back();
    InputBuffer input(path);
    input.OnFill([&] { ShowReading(input); });
    Trace trace = ReadTrace(input, request_.reader);
    trace.FoldStreams(request_.streams);
    trace.work_ns = request_.work_ns;
    progress_.Clear();
    return trace;
  }

  void ShowReading(const InputBuffer& input) {
    const std::uint64_t bytes = input.file_bytes();
    std::string text = input.path() + ": reading";
    if (bytes != 0) {
      text += ", " + std::to_string(input.read_bytes() * 100 / bytes) + " %";
    } else {
      text += ", " + HumanBytes(input.read_bytes());
    }
    Show(text);
  }

  void Show(const std::string& text) {
    CheckInterrupt();
    progress_.Show(text);
  }

  void Replay(const Trace& trace) {
    TraceReport& report = reports_.back();
    report.trace = TraceFacts(trace);
    may_be_wrong_ = may_be_wrong_ || trace.skipped.IsSuspect();
    report.is_default_device = !IsFlagSet("strata_sim_memory");
    if (report.is_default_device && trace.recorded.device_bytes != 0) {
      report.is_default_device = false;
      report.is_recorded_device = true;
    }
    report.device_bytes =
        report.is_recorded_device
            ? trace.recorded.device_bytes
            : request_.strategies.front().platform.sim_memory_bytes;
    report.has_limit = HasLimit(request_.strategies.front());
    report.limit_bytes = LimitBytes(request_.strategies.front());
    if (auto row = MakeRecordedRow(trace, request_.settings)) {
      report.rows.push_back(*row);
    }
    bool serves = false;
    for (const Options& options : request_.strategies) {
      serves = ReplayStrategy(trace, options) || serves;
    }
    if (!serves) FindAlternatives(trace);
  }

  // Returns whether the strategy serves all requests.
  bool ReplayStrategy(const Trace& trace, Options options) {
    TraceReport& report = reports_.back();
    options.platform.sim_memory_bytes = report.device_bytes;
    try {
      report.rows.push_back(
          MakeReplayRow(trace, options, request_.settings,
                        [&](const std::string& text) { Show(text); }));
    } catch (const std::runtime_error& error) {
      Report(error.what());
      return false;
    } catch (const BadAlloc& error) {
      Report(error.what());
      return false;
    }
    has_rows_ = true;
    progress_.Clear();
    const ReplayRow& row = report.rows.back();
    WarnOfFailure(row);
    has_failed_ = has_failed_ || row.failed_line;
    return ServesAll(row.result);
  }

  // Tries other strategies until two serve the trace. No flag limits a peer, so
  // peers are no alternative if a flag limits strategies.
  void FindAlternatives(const Trace& trace) {
    TraceReport& report = reports_.back();
    if (trace.peak_live_bytes > report.MostLiveBytes()) return;
    for (const std::string& name : AlternativeNames()) {
      if (report.has_limit && peers::IsPeerName(name)) continue;
      Options options = request_.strategies.front();
      options.allocator_strategy = name;
      options.platform.sim_memory_bytes = report.device_bytes;
      Show(trace.path + ": trying " + name);
      if (ServesQuietly(trace, options, request_.settings.plan)) {
        report.alternatives.push_back(name);
      }
      if (report.alternatives.size() == 2) break;
    }
    progress_.Clear();
  }

  // Strategies that the command line does not name: first the default and
  // PyTorch's switch.
  std::vector<std::string> AlternativeNames() const {
    Options defaults = request_.strategies.front();
    defaults.allocator_strategy = Options().allocator_strategy;
    std::vector<std::string> names = {ReplayedStrategy(defaults),
                                      "peer:pytorch_expandable"};
    for (const std::string& name : StrategyNames()) names.push_back(name);
    std::vector<std::string> result;
    for (const std::string& name : names) {
      const auto is_asked = [&](const Options& options) {
        return ReplayedStrategy(options) == name;
      };
      const bool is_known =
          std::any_of(request_.strategies.begin(), request_.strategies.end(),
                      is_asked) ||
          std::find(result.begin(), result.end(), name) != result.end();
      if (!is_known) result.push_back(name);
    }
    return result;
  }

  void Report(const char* error) {
    progress_.Clear();
    std::fprintf(stderr, "strata: %s\n", error);
    has_errors_ = true;
  }

  // Prints the rows of a trace as soon as they are complete, once.
  void Print(std::size_t index) {
    if (index < printed_) return;
    printed_ = index + 1;
    const TraceReport& report = reports_[index];
    if (request_.as_json || report.rows.empty()) return;
    if (has_printed_) std::fputs("\n", stdout);
    has_printed_ = true;
    std::fputs(ToText(report, names_[index], request_.wide).c_str(), stdout);
    std::fflush(stdout);
  }

  int ExitCode() const {
    if (was_interrupted_) return 130;
    if (has_errors_) return 2;
    if (may_be_wrong_) return 3;
    return has_failed_ ? 1 : 0;
  }

  const ReplayRequest& request_;
  const std::vector<std::string> names_;
  ProgressLine progress_;
  std::vector<TraceReport> reports_;  // one per trace that was started
  bool has_rows_ = false;             // rows of replays
  std::size_t printed_ = 0;           // traces with printed rows
  bool has_printed_ = false;          // any output
  bool has_errors_ = false;
  bool may_be_wrong_ = false;
  bool has_failed_ = false;
  bool was_interrupted_ = false;
};

}  // namespace

int RunReplays(const ReplayRequest& request) {
  return ReplaySession(request).Run();
}

}  // namespace strata::tools
