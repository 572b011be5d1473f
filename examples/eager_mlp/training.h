#ifndef STRATA_EXAMPLES_EAGER_MLP_TRAINING_H_
#define STRATA_EXAMPLES_EAGER_MLP_TRAINING_H_

#include <vector>

#include "strata/facade/allocator_facade.h"

namespace eager_mlp {

// What a training gives.
struct Trained {
  std::vector<float> losses;  // one for each step
  std::vector<float> parameters;
};

// Each step allocates, launches and frees everything anew.
Trained TrainEager(strata::AllocatorFacade& facade, int steps);
// The first step is captured into a graph, which is launched for every step.
Trained TrainCaptured(strata::AllocatorFacade& facade, int steps);

}  // namespace eager_mlp

#endif  // STRATA_EXAMPLES_EAGER_MLP_TRAINING_H_
