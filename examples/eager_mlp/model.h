#ifndef STRATA_EXAMPLES_EAGER_MLP_MODEL_H_
#define STRATA_EXAMPLES_EAGER_MLP_MODEL_H_

#include <cstdint>
#include <vector>

#include "strata/examples/eager_mlp/runtime.h"
#include "strata/examples/eager_mlp/tape.h"
#include "strata/tensor/tensor.h"

namespace eager_mlp {

// Layers of `sizes[i]` inputs and `sizes[i + 1]` outputs, with ReLU between.
//
// Model: the initial parameters are random numbers, the same for the same seed.
class Mlp {
 public:
  Mlp(Runtime& runtime, const std::vector<int>& sizes, std::uint64_t seed);

  Variable Forward(Tape& tape, const strata::Tensor& x) const;
  // Weights and biases in turn, from the first layer on.
  const std::vector<Variable>& parameters() const { return parameters_; }
  // All parameter values in a row. Waits for the submitted work.
  std::vector<float> Download() const;

 private:
  Runtime& runtime_;
  std::vector<Variable> parameters_;
};

// Gradient descent with momentum.
class Optimizer {
 public:
  Optimizer(Runtime& runtime, std::vector<Variable> parameters);
  // Moves each parameter along its gradient, and frees the gradient.
  void Step();

 private:
  Runtime& runtime_;
  const std::vector<Variable> parameters_;
  std::vector<strata::Tensor> velocities_;  // one for each parameter
};

}  // namespace eager_mlp

#endif  // STRATA_EXAMPLES_EAGER_MLP_MODEL_H_
