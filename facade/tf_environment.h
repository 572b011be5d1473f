#ifndef STRATA_FACADE_TF_ENVIRONMENT_H_
#define STRATA_FACADE_TF_ENVIRONMENT_H_

#include <string>
#include <vector>

#include "strata/facade/host_strategy.h"
#include "strata/facade/options.h"

namespace strata {

// Options changed by the variables with which TensorFlow and XLA are
// configured.
struct TfEnvironment {
  Options options;
  // "TF_FORCE_GPU_ALLOW_GROWTH=true: bfc_allow_growth=true" for each variable
  // that changed an option.
  std::vector<std::string> changes;
  // For each variable whose text cannot be used: its name, the text and the
  // reason. Nothing of it took effect.
  std::vector<std::string> errors;
};

// Reads the variables about devices of docs/bfc_environment.md through
// `lookup`. A variable overrides the options it stands for; one that is empty
// counts as not set. Those about host memory are host_strategy.h's.
//
// Errors: std::invalid_argument naming two variables that contradict each
//   other.
// Source: tf_bfc.md R59 to R62.
TfEnvironment WithTfEnvironment(const Options& options,
                                const EnvironmentLookup& lookup);

// The variables that WithTfEnvironment reads.
std::vector<std::string> TfEnvironmentVariables();

// `options` itself, unless strata_tf_environment is on: then the variables of
// the process apply, and what came of each is logged.
//
// Errors: as WithTfEnvironment.
Options WithProcessEnvironment(const Options& options);

}  // namespace strata

#endif  // STRATA_FACADE_TF_ENVIRONMENT_H_
