// The CUDA platform on this machine, with a GPU or without.

#include "strata/platform/cuda/cuda_platform.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <string>

#include "strata/platform/registry.h"

namespace strata::cuda {
namespace {

// The reason for the absence of a CUDA platform; empty if there is one.
std::string Problem() {
  PlatformOptions options;
  options.platform = "cuda";
  try {
    return MakePlatform(options)->device_count() > 0 ? "" : "it has no device";
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

TEST(CudaPlatformTest, HasADeviceOrSaysWhyNot) {
  const std::string problem = Problem();
  const std::string prefix = "strata_platform: cuda: ";
  EXPECT_TRUE(problem.empty() || problem.rfind(prefix, 0) == 0) << problem;
  EXPECT_NE(problem, prefix);
}

TEST(CudaPlatformTest, AutoPrefersIt) {
  const auto platform = MakePlatform(PlatformOptions());
  EXPECT_STREQ(platform->name(), Problem().empty() ? "cuda" : "sim");
}

}  // namespace
}  // namespace strata::cuda
