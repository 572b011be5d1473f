#include "strata/examples/eager_mlp/tape.h"

#include <stdexcept>

namespace eager_mlp {

void Variable::SetGradient(strata::Tensor gradient) const {
  if (state_->gradient.num_elements() != 0) {
    throw std::logic_error("a variable is used twice");
  }
  state_->gradient = std::move(gradient);
}

void Tape::Backward() {
  for (; !steps_.empty(); steps_.pop_back()) steps_.back()();
}

}  // namespace eager_mlp
