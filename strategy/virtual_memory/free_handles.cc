#include "strata/strategy/virtual_memory/free_handles.h"

#include <algorithm>
#include <tuple>

namespace strata {

bool FreeHandles::Add(PageHandle& handle, Block& block) {
  if (list_.size() == list_.capacity()) return false;
  list_.push_back({&handle, &block, block.offset_units, list_.size()});
  return true;
}

void FreeHandles::Sort() {
  std::sort(list_.begin(), list_.end(),
            [](const FreeHandle& a, const FreeHandle& b) {
              return std::tie(a.handle->bytes, b.epoch, a.left) <
                     std::tie(b.handle->bytes, a.epoch, b.left);
            });
  for (std::size_t i = 0; i < list_.size(); ++i) list_[i].left = i + 1;
}

std::size_t FreeHandles::CountUpTo(std::size_t bytes) const {
  const auto larger =
      std::upper_bound(list_.begin(), list_.end(), bytes,
                       [](std::size_t most, const FreeHandle& free) {
                         return most < free.handle->bytes;
                       });
  return static_cast<std::size_t>(larger - list_.begin());
}

std::size_t FreeHandles::CountLeft(std::size_t count) {
  // As in a union-find, each step halves the path for later searches.
  while (count != 0 && list_[count - 1].left != count) {
    std::size_t& left = list_[count - 1].left;
    if (left != 0) left = list_[left - 1].left;
    count = left;
  }
  return count;
}

FreeHandle* FreeHandles::Choose(std::size_t missing, std::size_t space) {
  std::size_t smaller = CountUpTo(missing);
  std::size_t count = CountLeft(smaller);
  // Otherwise the oldest of the first larger size with an unchosen handle.
  while (count == 0) {
    if (smaller == list_.size() || list_[smaller].handle->bytes > space) {
      return nullptr;
    }
    const std::size_t up_to = CountUpTo(list_[smaller].handle->bytes);
    const std::size_t last = CountLeft(up_to);
    if (last > smaller) count = last;
    smaller = up_to;
  }
  FreeHandle& chosen = list_[count - 1];
  chosen.left = count - 1;
  return &chosen;
}

}  // namespace strata
