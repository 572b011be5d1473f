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
  // Errors: std::logic_error if it has one: sums of gradients, for variables
  //   that are used twice, are not part of this example.
  void SetGradient(strata::Tensor gradient) const;
  // Gives the gradient's memory back.
  void ForgetGradient() const { state_->gradient = {}; }

 private:
  struct State {
    strata::Tensor value;
    strata::Tensor gradient;  // of no elements: there is none
  };
  std::shared_ptr<State> state_;
};

// What was computed, to be gone through backwards.
class Tape {
 public:
  // `step` sets the gradients of what an operation read, given that of what it
  // wrote. It holds the variables it needs.
  void Add(std::function<void()> step) { steps_.push_back(std::move(step)); }
  // Runs the steps in reverse, and frees what each held as soon as it is done.
  void Backward();

 private:
  std::vector<std::function<void()>> steps_;
};

}  // namespace eager_mlp

#endif  // STRATA_EXAMPLES_EAGER_MLP_TAPE_H_
