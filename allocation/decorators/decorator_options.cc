#include "strata/allocation/decorators/decorator_options.h"

#include <atomic>
#include <stdexcept>

#include "strata/base/log.h"
#include "strata/platform/host/processor.h"
#include "strata/platform/locks/process_barrier.h"

namespace strata {

bool DecoratorOptions::biased_lock() const {
  const bool is_auto = stream_lock == "auto";
  if (stream_lock == "word" || (is_auto && !IsFasterWithOwnedLocks())) {
    return false;
  }
  if (!is_auto && stream_lock != "biased") {
    throw std::invalid_argument("strata_stream_lock: unknown lock '" +
                                stream_lock + "' (known: auto, word, biased)");
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

}  // namespace strata
