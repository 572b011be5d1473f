#ifndef STRATA_EXAMPLES_EAGER_MLP_TRAINING_H_
#define STRATA_EXAMPLES_EAGER_MLP_TRAINING_H_

#include <vector>

#include "strata/facade/allocator_facade.h"

namespace eager_mlp {

// The result of a training.
struct Trained {
  std::vector<float> losses;  // one for each step
  std::vector<float> parameters;
};

// Allocates, launches and frees anew in each step.
Trained TrainEager(strata::AllocatorFacade& facade, int steps);
// Captures the first step into a graph, and launches the graph for every step.
Trained TrainCaptured(strata::AllocatorFacade& facade, int steps);

}  // namespace eager_mlp

#endif  // STRATA_EXAMPLES_EAGER_MLP_TRAINING_H_
