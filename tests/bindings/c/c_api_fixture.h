#ifndef STRATA_TESTS_BINDINGS_C_C_API_FIXTURE_H_
#define STRATA_TESTS_BINDINGS_C_C_API_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "strata/bindings/c/strata.h"

namespace strata {

// Places of the C ABI.
inline constexpr strata_place kDevice = {STRATA_DEVICE, 0};
inline constexpr strata_place kHost = {STRATA_HOST, 0};
inline constexpr std::size_t kMebibyte = std::size_t{1} << 20;

class CApiTest : public testing::Test {
 protected:
  CApiTest() { Create("strata_sim_devices=2,strata_sim_memory=64MiB"); }
  ~CApiTest() override {
    EXPECT_EQ(strata_destroy(facade_), STRATA_OK) << strata_last_error();
  }

  void Create(const std::string& options) {
    strata_destroy(facade_);
    facade_ = nullptr;
    ASSERT_EQ(
        strata_create(("strata_platform=sim," + options).c_str(), &facade_),
        STRATA_OK)
        << strata_last_error();
  }

  void* Alloc(std::size_t bytes, void* stream = nullptr,
              strata_place place = kDevice) {
    void* pointer = nullptr;
    EXPECT_EQ(strata_alloc(facade_, place, bytes, stream, &pointer), STRATA_OK)
        << strata_last_error();
    return pointer;
  }
  void* NewStream(int device = 0) {
    void* stream = nullptr;
    EXPECT_EQ(strata_stream_create(facade_, device, &stream), STRATA_OK);
    return stream;
  }
  nlohmann::json Stats() {
    std::size_t needed = 0;
    EXPECT_EQ(strata_stats_json(facade_, nullptr, 0, &needed),
              STRATA_SHORT_BUFFER);
    std::string text(needed, '\0');
    EXPECT_EQ(strata_stats_json(facade_, text.data(), needed, nullptr),
              STRATA_OK);
    text.pop_back();
    return nlohmann::json::parse(text);
  }
  std::uint64_t Live() {
    const nlohmann::json stats = Stats()["device:0"];
    return stats["allocations"].get<std::uint64_t>() -
           stats["frees"].get<std::uint64_t>();
  }

  strata_facade* facade_ = nullptr;
};

}  // namespace strata

#endif  // STRATA_TESTS_BINDINGS_C_C_API_FIXTURE_H_
