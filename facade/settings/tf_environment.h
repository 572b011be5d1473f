#ifndef STRATA_FACADE_SETTINGS_TF_ENVIRONMENT_H_
#define STRATA_FACADE_SETTINGS_TF_ENVIRONMENT_H_

#include <string>
#include <vector>

#include "strata/facade/options.h"
#include "strata/facade/settings/host_strategy.h"

namespace strata {

// Options after the environment variables of TensorFlow and XLA were applied.
struct TfEnvironment {
  Options options;
  // "TF_FORCE_GPU_ALLOW_GROWTH=true: bfc_allow_growth=true" for each variable
  // that changed an option.
  std::vector<std::string> changes;
  // For each variable with an invalid text: its name, the text and the reason.
  // Such a variable has no effect.
  std::vector<std::string> errors;
};

// Reads the variables about devices of docs/rules/bfc_environment.md through
// `lookup`. A variable overrides the options that it stands for; an empty one
// counts as not set. host_strategy.h reads the variables about host memory.
//
// Errors: std::invalid_argument naming two variables that contradict each
//   other.
// Source: tf_bfc.md R59 to R62.
TfEnvironment WithTfEnvironment(const Options& options,
                                const EnvironmentLookup& lookup);

// The variables that WithTfEnvironment reads.
std::vector<std::string> TfEnvironmentVariables();

// Returns `options`, unless strata_tf_environment is on: then the variables of
// the process apply, and the effect of each is logged.
//
// Errors: as WithTfEnvironment.
Options WithProcessEnvironment(const Options& options);

}  // namespace strata

#endif  // STRATA_FACADE_SETTINGS_TF_ENVIRONMENT_H_
