#include "strata/allocation/decorators/decorator_options.h"

#include <glog/logging.h>

#include <stdexcept>

#include "strata/platform/biased_lock/process_barrier.h"
#include "strata/platform/host/processor.h"

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
    LOG_FIRST_N(WARNING, 1)
        << "strata_stream_lock=biased: the system has no membarrier for this "
           "process, so that no thread can own a lock";
  }
  return is_available;
}

}  // namespace strata
