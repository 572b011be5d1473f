#ifndef STRATA_ALLOCATION_STREAMS_VISIT_EACH_H_
#define STRATA_ALLOCATION_STREAMS_VISIT_EACH_H_

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "strata/base/require_cxx20.h"

namespace strata {

// Calls `visit` with each element of `list` that is present from now until its
// turn. `mutex` guards `list`; it is not held during a visit. Visits from the
// last element to the first. If other threads erase or append elements, none is
// skipped, but one may be visited twice.
template <class Element, class Visit>
void VisitEach(std::mutex& mutex,
               const std::vector<std::shared_ptr<Element>>& list,
               Visit visit) noexcept {
  std::size_t index = std::numeric_limits<std::size_t>::max();
  while (index != 0) {
    std::shared_ptr<Element> element;
    {
      const std::lock_guard<std::mutex> guard(mutex);
      index = std::min(index, list.size());
      if (index != 0) element = list[--index];
    }
    if (element != nullptr) visit(*element);
  }
}

}  // namespace strata

#endif  // STRATA_ALLOCATION_STREAMS_VISIT_EACH_H_
