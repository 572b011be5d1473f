#ifndef STRATA_EXAMPLES_EAGER_MLP_OPS_H_
#define STRATA_EXAMPLES_EAGER_MLP_OPS_H_

#include "strata/examples/eager_mlp/runtime.h"
#include "strata/examples/eager_mlp/tape.h"
#include "strata/tensor/tensor.h"

namespace eager_mlp {

// Operations. Each allocates its result, launches its kernels, and adds its
// backward step to the tape.

// Returns x w + b. `input_gradient` false: the gradient of x is not needed.
Variable AffineOp(Runtime& runtime, Tape& tape, const Variable& x,
                  const Variable& w, const Variable& b,
                  bool input_gradient = true);

Variable ReluOp(Runtime& runtime, Tape& tape, const Variable& x);

// The mean of the squared differences, as one number. The backward pass starts
// here.
strata::Tensor SquaredErrorOp(Runtime& runtime, Tape& tape,
                              const Variable& predicted,
                              const strata::Tensor& wanted);

}  // namespace eager_mlp

#endif  // STRATA_EXAMPLES_EAGER_MLP_OPS_H_
