// The C ABI: memory for other processes and for network cards.

#include <gtest/gtest.h>

#include <cstddef>

#include "strata/tests/bindings/c/c_api_fixture.h"

namespace strata {
namespace {

constexpr char kMappedDevice[] =
    "strata_sim_memory=64MiB,allocator_strategy=virtual_memory";

class CApiExportTest : public CApiTest {
 protected:
  CApiExportTest() { Create(kMappedDevice); }

  void* AllocSpecial(std::uint32_t use) {
    void* pointer = nullptr;
    EXPECT_EQ(strata_alloc_special(facade_, kDevice, kMebibyte, use, nullptr,
                                   &pointer),
              STRATA_OK)
        << strata_last_error();
    return pointer;
  }
};

TEST_F(CApiExportTest, ExportIsImportedUnderOtherAddresses) {
  void* const pointer = Alloc(3 * kMebibyte);
  strata_exported* exported = nullptr;
  const strata_piece* pieces = nullptr;
  std::size_t count = 0;
  ASSERT_EQ(strata_export(facade_, pointer, &exported, &pieces, &count),
            STRATA_OK)
      << strata_last_error();
  EXPECT_EQ(count, 2U);
  strata_imported* imported = nullptr;
  void* other = nullptr;
  std::size_t bytes = 0;
  ASSERT_EQ(
      strata_import(facade_, kDevice, pieces, count, &imported, &other, &bytes),
      STRATA_OK)
      << strata_last_error();
  EXPECT_EQ(bytes, 3 * kMebibyte);
  EXPECT_NE(other, pointer);
  EXPECT_EQ(strata_imported_close(imported), STRATA_OK);
  EXPECT_EQ(strata_free(facade_, pointer), STRATA_OK);
  std::size_t released = 1;
  EXPECT_EQ(strata_release(facade_, kDevice, &released), STRATA_OK);
  EXPECT_EQ(released, 0U);
  EXPECT_EQ(strata_exported_close(exported), STRATA_OK);
  EXPECT_EQ(strata_release(facade_, kDevice, &released), STRATA_OK);
  EXPECT_EQ(released, 4 * kMebibyte);
}

TEST_F(CApiExportTest, OneHandleIsItsAddressRange) {
  void* const pointer = AllocSpecial(STRATA_ONE_HANDLE);
  void* base = nullptr;
  std::size_t bytes = 0;
  ASSERT_EQ(strata_address_range(facade_, pointer, &base, &bytes), STRATA_OK);
  EXPECT_EQ(base, pointer);
  EXPECT_EQ(bytes, 2 * kMebibyte);
  EXPECT_EQ(strata_free(facade_, pointer), STRATA_OK);
}

TEST_F(CApiExportTest, LegacyMemoryIsNotExported) {
  void* const pointer = AllocSpecial(STRATA_LEGACY_IPC);
  strata_exported* exported = nullptr;
  const strata_piece* pieces = nullptr;
  std::size_t count = 0;
  EXPECT_EQ(strata_export(facade_, pointer, &exported, &pieces, &count),
            STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(exported, nullptr);
  EXPECT_EQ(strata_free(facade_, pointer), STRATA_OK);
}

TEST_F(CApiExportTest, WrongArgumentsAreNamed) {
  void* pointer = nullptr;
  EXPECT_EQ(
      strata_alloc_special(facade_, kDevice, 1, /*use=*/4, nullptr, &pointer),
      STRATA_INVALID_ARGUMENT);
  strata_imported* imported = nullptr;
  std::size_t bytes = 0;
  EXPECT_EQ(
      strata_import(facade_, kDevice, nullptr, 1, &imported, &pointer, &bytes),
      STRATA_INVALID_ARGUMENT);
  EXPECT_EQ(strata_export(facade_, &bytes, nullptr, nullptr, nullptr),
            STRATA_INVALID_ARGUMENT);
  void* base = nullptr;
  EXPECT_EQ(strata_address_range(facade_, &bytes, &base, &bytes),
            STRATA_UNKNOWN_POINTER);
  EXPECT_EQ(strata_exported_close(nullptr), STRATA_OK);
  EXPECT_EQ(strata_imported_close(nullptr), STRATA_OK);
}

}  // namespace
}  // namespace strata
