#ifndef STRATA_ALLOCATION_STREAMS_VISIT_EACH_H_
#define STRATA_ALLOCATION_STREAMS_VISIT_EACH_H_

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "strata/platform/require_cxx20.h"

namespace strata {

// Calls `visit` with each element of `list`, which `mutex` guards, that is
// there from now until its turn; the mutex is not held meanwhile. From the last
// one to the first: what others erase or append leaves none out, but one may
// come twice.
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
