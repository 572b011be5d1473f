#include "strata/allocation/decorator.h"

#include <stdexcept>
#include <utility>

namespace strata {

Decorator::Decorator(std::shared_ptr<Allocator> underlying)
    : underlying_(std::move(underlying)) {
  if (underlying_ == nullptr) {
    throw std::invalid_argument("a decorator needs an underlying allocator");
  }
}

}  // namespace strata
