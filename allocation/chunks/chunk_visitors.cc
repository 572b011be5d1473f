#include "strata/allocation/chunks/chunk_visitors.h"

#include <algorithm>
#include <utility>

namespace strata {

void ChunkVisitors::Add(Visitor visitor) {
  const std::lock_guard<std::mutex> guard(mutex_);
  auto grown = std::make_shared<List>(*visitors_);
  grown->push_back(std::move(visitor));
  visitors_ = std::move(grown);
}

void ChunkVisitors::Visit(void* data, std::size_t bytes,
                          int count_change) const noexcept {
  std::shared_ptr<const List> visitors;
  {
    const std::lock_guard<std::mutex> guard(mutex_);
    visitors = visitors_;
  }
  const auto visit = [&](const Visitor& visitor) {
    visitor(data, bytes, count_change);
  };
  if (count_change > 0) {
    std::for_each(visitors->begin(), visitors->end(), visit);
  } else {
    std::for_each(visitors->rbegin(), visitors->rend(), visit);
  }
}

}  // namespace strata
