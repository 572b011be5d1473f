// How the functions of the driver are found, with a fake lookup.

#include "strata/platform/cuda/cuda_driver.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

namespace strata::cuda {
namespace {

using testing::AllOf;
using testing::Each;
using testing::HasSubstr;
using testing::Key;
using testing::MatchesRegex;
using testing::Not;
using testing::Pair;

// The requested names and versions.
std::map<std::string, int>& Asked() {
  static std::map<std::string, int> asked;
  return asked;
}

CUresult FindAll(const char* symbol, void** function, int version, cuuint64_t,
                 CUdriverProcAddressQueryResult* result) {
  Asked()[symbol] = version;
  *function = reinterpret_cast<void*>(&FindAll);
  *result = CU_GET_PROC_ADDRESS_SUCCESS;
  return CUDA_SUCCESS;
}

// A driver of CUDA 12.2, without pools.
CUresult FindOld(const char* symbol, void** function, int version,
                 cuuint64_t flags, CUdriverProcAddressQueryResult* result) {
  if (std::string(symbol).rfind("cuMemPool", 0) == 0 || version > 12020) {
    *result = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    *function = nullptr;
    return CUDA_SUCCESS;
  }
  return FindAll(symbol, function, version, flags, result);
}

// The driver knows cuMemAlloc by that name and a version. It does not know
// cuMemAlloc_v2, to which cuda.h expands the name.
TEST(CudaDriverTest, AsksForFunctionsByTheirPlainNames) {
  Asked().clear();
  CudaDriver driver;
  EXPECT_EQ(FindCudaFunctions(&FindAll, &driver), "");
  EXPECT_THAT(Asked(), testing::Contains(Pair("cuMemAlloc", 3020)));
  EXPECT_THAT(Asked(),
              testing::Contains(Pair("cuStreamGetCaptureInfo", 12030)));
  EXPECT_THAT(Asked(), Each(Key(Not(MatchesRegex(".*_v[0-9]+|.*_ptsz")))));
}

TEST(CudaDriverTest, SaysWhatIsMissingButForWhatIsNewer) {
  CudaDriver driver;
  EXPECT_THAT(FindCudaFunctions(&FindOld, &driver),
              AllOf(HasSubstr(" cuMemPoolCreate "),
                    Not(HasSubstr("cuStreamBeginCaptureToGraph"))));
  EXPECT_EQ(driver.MemPoolCreate, nullptr);
  EXPECT_EQ(driver.StreamBeginCaptureToGraph, nullptr);
  EXPECT_NE(driver.MemAlloc, nullptr);
}

}  // namespace
}  // namespace strata::cuda
