#include "strata/allocation/decorators/decorator_options.h"

#include <atomic>
#include <stdexcept>
#include <string>

#include "strata/allocation/decorators/fault_allocator.h"
#include "strata/allocation/decorators/registered/decorator_factories.h"
#include "strata/base/log.h"
#include "strata/platform/biased_lock/process_barrier.h"
#include "strata/platform/host/processor.h"

namespace strata {

bool DecoratorOptions::biased_lock() const {
  ChoiceOf("strata_stream_lock", "lock", stream_lock,
           {"auto", "word", "biased"});
  const bool is_auto = stream_lock == "auto";
  if (stream_lock == "word" || (is_auto && !IsFasterWithOwnedLocks())) {
    return false;
  }
  const bool is_available = ProcessBarrier::Instance().is_available();
  if (!is_auto && !is_available) {
    static std::atomic<bool> is_logged{false};
    STRATA_LOG_IF(Warning, !is_logged.exchange(true))
        << "strata_stream_lock=biased: the system has no membarrier for this "
           "process, so that no thread can own a lock";
  }
  return is_available;
}

void CheckDecoratorOptions(const DecoratorOptions& options) {
  static_cast<void>(options.biased_lock());
  if (options.retry_alone && options.retry_time_ms <= 0) {
    throw std::invalid_argument(
        "strata_retry_alone contradicts gpu_allocator_retry_time=" +
        std::to_string(options.retry_time_ms) + ": there is no wait");
  }
  if (options.exact_peak && !options.stat) {
    throw std::invalid_argument(
        "strata_exact_peak contradicts strata_stat=false: nothing counts");
  }
  DecoratorFactories::Instance().Select(options.registered,
                                        options.registered_texts);
  FaultPlan::Parse(options.fault);
  GuardSettings::From(options);
}

}  // namespace strata
