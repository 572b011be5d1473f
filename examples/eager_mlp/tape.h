#ifndef STRATA_EXAMPLES_EAGER_MLP_TAPE_H_
#define STRATA_EXAMPLES_EAGER_MLP_TAPE_H_

#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "strata/tensor/tensor.h"

namespace eager_mlp {

// A tensor and, after Tape::Backward, its gradient.
//
// Model: a reference: copies are the same variable.
class Variable {
 public:
  explicit Variable(strata::Tensor value)
      : state_(std::make_shared<State>(State{std::move(value), {}})) {}

  const strata::Tensor& value() const { return state_->value; }
  const strata::Tensor& gradient() const { return state_->gradient; }
  // Errors: std::logic_error if it has a gradient. This example does not sum
  //   gradients of variables that are used twice.
  void SetGradient(strata::Tensor gradient) const;
  // Frees the memory of the gradient.
  void ForgetGradient() const { state_->gradient = {}; }

 private:
  struct State {
    strata::Tensor value;
    strata::Tensor gradient;  // without elements: no gradient
  };
  std::shared_ptr<State> state_;
};

// The operations of a forward pass, for the backward pass.
class Tape {
 public:
  // `step` computes the gradients of the inputs of an operation from the
  // gradient of its output. It holds the variables it needs.
  void Add(std::function<void()> step) { steps_.push_back(std::move(step)); }
  // Runs the steps in reverse order. Frees the objects of each step after it.
  void Backward();

 private:
  std::vector<std::function<void()>> steps_;
};

}  // namespace eager_mlp

#endif  // STRATA_EXAMPLES_EAGER_MLP_TAPE_H_
