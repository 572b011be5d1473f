#include "strata/platform/sim/sim_work.h"

#include <algorithm>
#include <array>

#include "strata/platform/sim/host_function_scope.h"
#include "strata/platform/sim/sim_device.h"
#include "strata/platform/sim/sim_device_run.h"

namespace strata {
namespace {

// To launch a kernel; an estimate, as cost_table.cc says.
constexpr std::uint64_t kLaunchNs = 2'500;

using Ranges = std::array<WorkRange, kMaxWorkRanges>;

}  // namespace

Status SimWork::Enqueue(Stream stream, const WorkRange* ranges,
                        std::size_t count, std::uint64_t busy_ns,
                        std::uint64_t pattern) {
  return device_->EnqueueWork(stream, ranges, count, busy_ns, pattern);
}

Status SimDevice::EnqueueWork(const Stream& stream, const WorkRange* ranges,
                              std::size_t count, std::uint64_t busy_ns,
                              std::uint64_t pattern) {
  if (HostFunctionScope::Active()) return Status::kNotPermitted;
  if (sticky_error() != Status::kSuccess) return sticky_error();
  if (!IsValidWork(ranges, count)) return Status::kInvalidValue;
  // As for any launch (capture_rules.def).
  const Status refusal = CheckCaptures(CaptureRuleOf(DeviceCall::kMemsetAsync),
                                       {stream, {}, 0, 0});
  if (refusal != Status::kSuccess) return refusal;
  CallRecord seen;
  {
    SimLock lock(mutex_);
    if (!streams_.Accepts(stream)) return Status::kInvalidResourceHandle;
    Ranges held;
    std::copy_n(ranges, count, held.begin());
    if (SimCapture* capture = CaptureOf(stream)) {
      const Status added = AddNode(capture, stream, busy_ns,
                                   WorkAction{held, count, pattern}, &seen);
      if (added != Status::kSuccess) return added;
    } else {
      const auto work = [=, this] {
        return ExecuteWork(held.data(), count, pattern);
      };
      Submit(stream, busy_ns, work, &lock);
    }
  }
  PassTime(kLaunchNs);
  NoteUses(*this, stream, ranges, count, seen.node);
  return Status::kSuccess;
}

}  // namespace strata
