#include "strata/allocation/option_fields.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <stdexcept>

namespace strata {
namespace {

TEST(OptionFieldsTest, ADefaultOfBytesHasAUnit) {
  static_assert(BytesOfDefault("0") == 0);
  static_assert(BytesOfDefault("256") == 256);
  static_assert(BytesOfDefault("3KiB") == 3 << 10);
  static_assert(BytesOfDefault("64MiB") == 64 << 20);
  static_assert(BytesOfDefault("80GiB") == std::uint64_t{80} << 30);
  static_assert(BytesOfDefault("32TiB") == std::uint64_t{32} << 40);
  EXPECT_THROW(BytesOfDefault("7 apples"), std::invalid_argument);
}

}  // namespace
}  // namespace strata
