// How the stand-in driver answers for names, versions and flags.

#include <gtest/gtest.h>

#include <regex>
#include <set>
#include <string>
#include <vector>

#include "strata/platform/simdriver/sim_driver_info.h"
#include "strata/tests/simdriver/driver_library.h"
#include "strata/tests/simdriver/header_matches.h"

namespace strata {
namespace {

TEST(SimDriverLookupTest, FindsEveryFunctionOfTheTypedefs) {
  WithDriver([](const DriverLibrary& driver) {
    const int count = ForEachMatch(
        "cudaTypedefs.h", "PFN_(cu[A-Za-z0-9]+)_v([0-9]+)(_pts[dz])?\\)",
        [&](const std::smatch& match) {
          const cuuint64_t flags = match[3].matched ? 2 : 0;
          EXPECT_NE(
              driver.Find(match[1].str().c_str(), std::stoi(match[2]), flags),
              nullptr)
              << match[0];
        });
    EXPECT_GT(count, 400);
  });
}

TEST(SimDriverLookupTest, ExportsEveryFunctionOfTheHeader) {
  WithDriver([](const DriverLibrary& driver) {
    const int count = ForEachMatch(
        "cuda.h", "CUDAAPI (cu[A-Za-z0-9_]+)\\(",
        [&](const std::smatch& match) {
          EXPECT_NE(driver.Exported(match[1].str().c_str()), nullptr)
              << match[1];
        });
    EXPECT_GT(count, 400);
    // Names that the header mentions only in macros.
    for (const char* const name :
         {"cuMemAlloc_v2", "cuStreamSynchronize_ptsz", "cuMemcpyHtoD_v2_ptds",
          "cuGraphInstantiateWithFlags", "cuStreamGetCaptureInfo_v3_ptsz"}) {
      EXPECT_NE(driver.Exported(name), nullptr) << name;
    }
  });
}

TEST(SimDriverLookupTest, FindsNoOtherName) {
  WithDriver([](const DriverLibrary& driver) {
    for (const char* const name :
         {"", "cuNoSuchFunction", "cuMemAlloc_v2", "cudaMalloc", "cuInit "}) {
      void* function = &function;
      CUdriverProcAddressQueryResult result = CU_GET_PROC_ADDRESS_SUCCESS;
      EXPECT_EQ(driver.Look(name, &function, CUDA_VERSION, 0, &result),
                CUDA_SUCCESS);
      EXPECT_EQ(result, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND) << name;
      EXPECT_EQ(function, nullptr);
    }
    EXPECT_EQ(driver.Exported("cuNoSuchFunction"), nullptr);
  });
}

TEST(SimDriverLookupTest, RefusesAVersionAboveItsOwn) {
  WithDriver([](const DriverLibrary& driver) {
    void* function = nullptr;
    CUdriverProcAddressQueryResult result = CU_GET_PROC_ADDRESS_SUCCESS;
    EXPECT_EQ(driver.Look("cuInit", &function, CUDA_VERSION + 10, 0, &result),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver.Look("cuInit", &function, CUDA_VERSION, 0, &result),
              CUDA_SUCCESS);
  });
}

TEST(SimDriverLookupTest, SaysThatAVersionIsNotSufficient) {
  WithDriver([](const DriverLibrary& driver) {
    void* function = &function;
    CUdriverProcAddressQueryResult result = CU_GET_PROC_ADDRESS_SUCCESS;
    EXPECT_EQ(driver.Look("cuMemCreate", &function, 10010, 0, &result),
              CUDA_SUCCESS);
    EXPECT_EQ(result, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    EXPECT_EQ(function, nullptr);
  });
}

TEST(SimDriverLookupTest, HasTwoForms) {
  WithDriver([](const DriverLibrary& driver) {
    const auto old = STRATA_DRIVER_FUNCTION(driver, cuGetProcAddress, 11030);
    ASSERT_NE(old, nullptr);
    EXPECT_NE(reinterpret_cast<void*>(old),
              driver.Find("cuGetProcAddress", 12000));
    void* function = nullptr;
    EXPECT_EQ(old("cuMemAlloc", &function, 11030, 0), CUDA_SUCCESS);
    EXPECT_EQ(function, driver.Find("cuMemAlloc", 12000));
    EXPECT_EQ(old("cuNoSuchFunction", &function, 11030, 0),
              CUDA_ERROR_NOT_FOUND);
  });
}

// Each version of these has parameters of its own.
TEST(SimDriverLookupTest, TheVersionSelectsTheFunction) {
  WithDriver([](const DriverLibrary& driver) {
    const auto differ = [&](const char* name, std::vector<int> versions) {
      std::set<void*> functions;
      for (const int version : versions) {
        void* const function = driver.Find(name, version);
        EXPECT_NE(function, nullptr) << name << " " << version;
        functions.insert(function);
      }
      EXPECT_EQ(functions.size(), versions.size()) << name;
    };
    differ("cuStreamGetCaptureInfo", {10010, 11030, 12030});
    differ("cuGraphInstantiate", {10000, 11000, 12000});
    differ("cuMemPrefetchAsync", {8000, 12020});
    differ("cuStreamUpdateCaptureDependencies", {11030, 12030});
    differ("cuGraphNodeGetDependencies", {10000, 12030});
    EXPECT_EQ(driver.Find("cuStreamGetCaptureInfo", 11080),
              driver.Find("cuStreamGetCaptureInfo", 11030));
    EXPECT_EQ(driver.Find("cuGraphInstantiate", 12000),
              driver.Find("cuGraphInstantiateWithFlags", 12000));
    EXPECT_EQ(driver.Find("cuStreamGetCaptureInfo", 12030),
              driver.Exported("cuStreamGetCaptureInfo_v3"));
  });
}

TEST(SimDriverLookupTest, FlagsSelectTheNullStream) {
  WithDriver([](const DriverLibrary& driver) {
    void* const legacy = driver.Find("cuStreamQuery", 12000, 0);
    EXPECT_EQ(driver.Find("cuStreamQuery", 12000, 1), legacy);
    EXPECT_NE(driver.Find("cuStreamQuery", 12000, 2), legacy);
    EXPECT_EQ(driver.Find("cuStreamQuery", 12000, 2),
              driver.Exported("cuStreamQuery_ptsz"));
    EXPECT_EQ(driver.Find("cuMemcpy", 12000, 2),
              driver.Exported("cuMemcpy_ptds"));
    // A function without a stream argument has one variant.
    EXPECT_EQ(driver.Find("cuMemAlloc", 12000, 2),
              driver.Find("cuMemAlloc", 12000, 0));
    void* function = nullptr;
    EXPECT_EQ(driver.Look("cuInit", &function, 12000, 3, nullptr),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(driver.Look("cuInit", &function, 12000, 4, nullptr),
              CUDA_ERROR_INVALID_VALUE);
  });
}

TEST(SimDriverLookupTest, UnimplementedFunctionsAreRefusedAndCounted) {
  WithDriver([](const DriverLibrary& driver) {
    const auto describe =
        driver.Get<SimDriverInfoFunction>(kSimDriverInfoName, CUDA_VERSION);
    ASSERT_NE(describe, nullptr);
    ASSERT_EQ(driver.Start(), CUDA_SUCCESS);
    SimDriverInfo info;
    ASSERT_EQ(describe(&info), 0);
    EXPECT_EQ(info.unimplemented_calls, 0u);
    CUarray array = nullptr;
    const auto create = STRATA_DRIVER_FUNCTION(driver, cuArrayCreate, 3020);
    EXPECT_EQ(create(&array, nullptr), CUDA_ERROR_NOT_SUPPORTED);
    using Exported = CUresult (*)();
    EXPECT_EQ(
        reinterpret_cast<Exported>(driver.Exported("cuIpcGetMemHandle"))(),
        CUDA_ERROR_NOT_SUPPORTED);
    ASSERT_EQ(describe(&info), 0);
    EXPECT_EQ(info.unimplemented_calls, 2u);
    EXPECT_STREQ(info.last_unimplemented, "cuIpcGetMemHandle");
    info.bytes = 8;
    EXPECT_EQ(describe(&info), CUDA_ERROR_INVALID_VALUE);
  });
}

TEST(SimDriverLookupTest, FindsTheFunctionsOfTheStandIn) {
  WithDriver([](const DriverLibrary& driver) {
    for (const char* const name :
         {kSimDriverInfoName, kSimDriverReportName, kSimDriverStateName}) {
      EXPECT_NE(driver.Find(name, CUDA_VERSION), nullptr) << name;
      EXPECT_EQ(driver.Find(name, CUDA_VERSION), driver.Exported(name));
    }
  });
}

TEST(SimDriverLookupTest, NamesAProgramWithAStaticRuntimeOnce) {
  WithDriver([](const DriverLibrary& driver) {
    ASSERT_EQ(driver.Start(), CUDA_SUCCESS);
    const auto get = STRATA_DRIVER_FUNCTION(driver, cuGetExportTable, 3000);
    const void* table = nullptr;
    const CUuuid id = {};
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(get(&table, &id), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(get(&table, &id), CUDA_ERROR_NOT_SUPPORTED);
    const std::string text = ::testing::internal::GetCapturedStderr();
    EXPECT_EQ(text.find("strata: "), 0U) << text;
    EXPECT_NE(text.find("simdriver_tests has a static CUDA runtime"),
              std::string::npos)
        << text;
    EXPECT_EQ(text.find("strata: ", 1), std::string::npos) << text;
  });
}

TEST(SimDriverLookupTest, NamesResults) {
  WithDriver([](const DriverLibrary& driver) {
    const char* text = nullptr;
    const auto name = STRATA_DRIVER_FUNCTION(driver, cuGetErrorName, 6000);
    const auto sentence =
        STRATA_DRIVER_FUNCTION(driver, cuGetErrorString, 6000);
    EXPECT_EQ(name(CUDA_ERROR_OUT_OF_MEMORY, &text), CUDA_SUCCESS);
    EXPECT_STREQ(text, "CUDA_ERROR_OUT_OF_MEMORY");
    EXPECT_EQ(sentence(CUDA_ERROR_OUT_OF_MEMORY, &text), CUDA_SUCCESS);
    EXPECT_STREQ(text, "out of memory");
    EXPECT_EQ(sentence(CUDA_SUCCESS, &text), CUDA_SUCCESS);
    EXPECT_STREQ(text, "no error");
    EXPECT_EQ(sentence(CUDA_ERROR_NOT_SUPPORTED, &text), CUDA_SUCCESS);
    EXPECT_STREQ(text, "operation not supported");
    EXPECT_EQ(name(static_cast<CUresult>(998), &text),
              CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(text, nullptr);
  });
}

}  // namespace
}  // namespace strata
