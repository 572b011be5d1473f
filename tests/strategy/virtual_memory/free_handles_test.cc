#include "strata/strategy/virtual_memory/free_handles.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace strata {
namespace {

// Free handles, each in a separate block.
class FreeHandlesTest : public ::testing::Test {
 protected:
  struct Entry {
    PageHandle handle;
    Block block;
  };

  void Add(std::size_t pages, FreeEpochs::Epoch epoch) {
    auto entry = std::make_unique<Entry>();
    entry->handle.bytes = pages * kPageBytes;
    entry->block.offset_units = epoch;
    handles_.Reserve(entries_.size() + 1);
    ASSERT_TRUE(handles_.Add(entry->handle, entry->block));
    entries_.push_back(std::move(entry));
  }
  // The pages of the chosen handle; 0: none.
  std::size_t ChoosePages(std::size_t missing, std::size_t space) {
    FreeHandle* const free =
        handles_.Choose(missing * kPageBytes, space * kPageBytes);
    return free != nullptr ? free->handle->bytes / kPageBytes : 0;
  }

  FreeHandles handles_;
  std::vector<std::unique_ptr<Entry>> entries_;
};

TEST_F(FreeHandlesTest, TheLargestThatDoesNotExceedWhatIsMissingComesFirst) {
  for (const std::size_t pages : {1U, 2U, 4U, 8U}) Add(pages, 1);
  handles_.Sort();
  EXPECT_EQ(ChoosePages(5, 100), 4U);
  EXPECT_EQ(ChoosePages(5, 100), 2U);
  EXPECT_EQ(ChoosePages(5, 100), 1U);
  EXPECT_EQ(ChoosePages(5, 100), 8U);
  EXPECT_EQ(ChoosePages(5, 100), 0U);
}

TEST_F(FreeHandlesTest, NoneThatExceedsTheSpaceIsChosen) {
  Add(8, 1);
  handles_.Sort();
  EXPECT_EQ(ChoosePages(5, 7), 0U);
  EXPECT_EQ(ChoosePages(5, 8), 8U);
}

TEST_F(FreeHandlesTest, OfOneSizeTheOldestComesFirst) {
  for (const unsigned epoch : {3U, 1U, 2U}) {
    Add(2, static_cast<FreeEpochs::Epoch>(epoch));
  }
  handles_.Sort();
  for (const unsigned epoch : {1U, 2U, 3U}) {
    FreeHandle* const free = handles_.Choose(2 * kPageBytes, 2 * kPageBytes);
    ASSERT_NE(free, nullptr);
    EXPECT_EQ(free->epoch, epoch);
  }
}

TEST_F(FreeHandlesTest, OfEqualsTheLastAddedComesFirst) {
  for (int i = 0; i < 40; ++i) Add(2, 1);
  handles_.Sort();
  for (std::size_t i = entries_.size(); i-- > 0;) {
    FreeHandle* const free = handles_.Choose(2 * kPageBytes, 2 * kPageBytes);
    ASSERT_NE(free, nullptr);
    EXPECT_EQ(free->handle, &entries_[i]->handle);
  }
}

TEST_F(FreeHandlesTest, AFullListRefusesOneMore) {
  Add(1, 1);
  PageHandle handle;
  Block block;
  while (handles_.size() < handles_.capacity()) {
    ASSERT_TRUE(handles_.Add(handle, block));
  }
  EXPECT_FALSE(handles_.Add(handle, block));
}

// Compared with a search of the whole list.
TEST_F(FreeHandlesTest, EveryChoiceIsThatOfALinearSearch) {
  std::uint64_t random = 1;
  const auto next = [&random](std::size_t below) {
    random = random * 6364136223846793005U + 1442695040888963407U;
    return static_cast<std::size_t>(random >> 33) % below;
  };
  for (int i = 0; i < 300; ++i) {
    Add(1 + next(12), static_cast<FreeEpochs::Epoch>(next(5)));
  }
  handles_.Sort();
  std::vector<bool> is_chosen(entries_.size(), false);
  for (int step = 0; step < 400; ++step) {
    const std::size_t missing = 1 + next(14);
    const std::size_t space = missing + next(6);
    const Entry* best = nullptr;
    const auto is_better = [&](const Entry& a, const Entry& b) {
      const std::size_t limit = missing * kPageBytes;
      const bool a_fits = a.handle.bytes <= limit;
      const bool b_fits = b.handle.bytes <= limit;
      if (a_fits != b_fits) return a_fits;
      if (a.handle.bytes != b.handle.bytes) {
        return (a.handle.bytes > b.handle.bytes) == a_fits;
      }
      return a.block.offset_units < b.block.offset_units;
    };
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      const Entry& entry = *entries_[i];
      if (is_chosen[i] || entry.handle.bytes > space * kPageBytes) continue;
      if (best == nullptr || is_better(entry, *best)) best = &entry;
    }
    FreeHandle* const free =
        handles_.Choose(missing * kPageBytes, space * kPageBytes);
    ASSERT_EQ(free == nullptr, best == nullptr);
    if (free == nullptr) continue;
    EXPECT_EQ(free->handle->bytes, best->handle.bytes);
    EXPECT_EQ(free->epoch, best->block.offset_units);
    for (std::size_t i = 0; i < entries_.size(); ++i) {
      if (&entries_[i]->handle != free->handle) continue;
      EXPECT_FALSE(is_chosen[i]);
      is_chosen[i] = true;
    }
  }
}

}  // namespace
}  // namespace strata
