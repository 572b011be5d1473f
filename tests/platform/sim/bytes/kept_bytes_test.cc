#include "strata/platform/sim/bytes/kept_bytes.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>

namespace strata::sim {
namespace {

void Write(KeptBytes& kept, std::uint64_t offset, const std::string& text) {
  kept.Write(offset, text.data(), text.size());
}

// The bytes of the run; '.' is unknown.
std::string Show(const KeptBytes& kept, std::uint64_t offset,
                 std::uint64_t count) {
  std::string text(count, '.');
  for (const KeptBytes::Part& part : kept.Find({offset, count})) {
    text.replace(part.offset - offset, part.count, part.bytes, part.count);
  }
  return text;
}

TEST(KeptBytesTest, AreReadWhereTheyWereWritten) {
  KeptBytes kept;
  EXPECT_TRUE(kept.empty());
  Write(kept, 10, "abc");
  EXPECT_EQ(Show(kept, 8, 7), "..abc..");
  EXPECT_EQ(Show(kept, 11, 1), "b");
  EXPECT_EQ(Show(kept, 13, 2), "..");
}

TEST(KeptBytesTest, ALaterWriteReplacesThem) {
  KeptBytes kept;
  Write(kept, 10, "abcdef");
  Write(kept, 12, "XY");
  EXPECT_EQ(Show(kept, 10, 6), "abXYef");
  Write(kept, 8, "12345");
  EXPECT_EQ(Show(kept, 8, 8), "12345Yef");
}

TEST(KeptBytesTest, BothSidesOfADroppedRangeStay) {
  KeptBytes kept;
  Write(kept, 10, "abcdef");
  Write(kept, 16, "gh");
  kept.Drop({12, 5});
  EXPECT_EQ(Show(kept, 10, 8), "ab.....h");
  kept.Drop({0, 100});
  EXPECT_TRUE(kept.empty());
  EXPECT_EQ(kept.bytes(), 0u);
}

TEST(KeptBytesTest, TheOldestWritesAreDroppedWhenThereAreTooMany) {
  KeptBytes kept;
  const std::string text(KeptBytes::kMostWriteBytes, 'a');
  std::uint64_t count = 0;
  for (; kept.bytes() + text.size() + KeptBytes::kBytesPerWrite <=
         KeptBytes::kMostBytes;
       ++count) {
    Write(kept, count * text.size(), text);
  }
  EXPECT_EQ(Show(kept, 0, 1), "a");
  // The rest of the second write is as old as the write was.
  kept.Drop({text.size() + 1, 1});
  Write(kept, count * text.size(), text);
  Write(kept, (count + 1) * text.size(), text);
  EXPECT_EQ(Show(kept, 0, 1), ".");
  EXPECT_EQ(Show(kept, text.size(), 3), "...");
  EXPECT_EQ(Show(kept, 2 * text.size(), 1), "a");
  EXPECT_LE(kept.bytes(), KeptBytes::kMostBytes);
}

// The bytes that a copy of the run to the host knows.
std::string ShowRead(const KeptBytes& kept, std::uint64_t offset,
                     std::uint64_t count) {
  std::string text(count, '.');
  for (const KeptBytes::Part& part : kept.FindRead({offset, count})) {
    text.replace(part.offset - offset, part.count, part.bytes, part.count);
  }
  return text;
}

TEST(KeptBytesTest, AfterAKernelOnlyReadsOfOneWriteKnowThem) {
  KeptBytes kept;
  Write(kept, 0, "0123456789");
  EXPECT_EQ(ShowRead(kept, 0, 12), "0123456789..");
  EXPECT_EQ(ShowRead(kept, 0, 4), "0123");
  kept.NoteKernel();
  EXPECT_EQ(ShowRead(kept, 0, 10), "0123456789");
  EXPECT_EQ(ShowRead(kept, 0, 12), "............");
  EXPECT_EQ(ShowRead(kept, 0, 4), "....");
  EXPECT_EQ(ShowRead(kept, 2, 4), "....");
  EXPECT_EQ(Show(kept, 0, 4), "0123");
  Write(kept, 2, "ab");
  EXPECT_EQ(ShowRead(kept, 0, 10), "..ab......");
}

TEST(KeptBytesTest, AfterAKernelNoReadOfANumberKnowsThem) {
  KeptBytes kept;
  Write(kept, 0, "01234567");
  EXPECT_EQ(ShowRead(kept, 0, 8), "01234567");
  kept.NoteKernel();
  EXPECT_EQ(ShowRead(kept, 0, 8), "........");
}

// After a kernel, the rest of a write that lost its first bytes is unknown.
TEST(KeptBytesTest, AfterAKernelNoReadKnowsTheRestOfAWrite) {
  KeptBytes kept;
  Write(kept, 0, "0123456789abcdef");
  kept.Drop({0, 4});
  kept.NoteKernel();
  EXPECT_EQ(ShowRead(kept, 4, 12), "............");
}

TEST(KeptBytesTest, AMovedPartIsAsOldAsBefore) {
  KeptBytes kept;
  Write(kept, 0, "0123456789");
  kept.NoteKernel();
  const KeptBytes::Part whole = kept.Find({0, 10}).front();
  const std::string bytes(whole.bytes, whole.count);
  kept.Move(whole, 20, bytes.data());
  EXPECT_EQ(ShowRead(kept, 20, 10), "0123456789");
  EXPECT_EQ(ShowRead(kept, 20, 5), ".....");
  const KeptBytes::Part half = kept.Find({0, 9}).front();
  kept.Move(half, 40, bytes.data());
  EXPECT_EQ(ShowRead(kept, 40, 9), ".........");
}

TEST(KeptBytesTest, AgreeWithAModel) {
  constexpr std::uint64_t kSpace = 64;
  std::mt19937 random(1);
  const auto draw = [&](std::uint64_t below) { return random() % below; };
  KeptBytes kept;
  std::string model(kSpace, '.');
  for (int step = 0; step < 20'000; ++step) {
    const std::uint64_t offset = draw(kSpace);
    const std::uint64_t count = 1 + draw(kSpace - offset);
    if (draw(3) == 0) {
      kept.Drop({offset, count});
      model.replace(offset, count, count, '.');
    } else {
      const std::string text(count, static_cast<char>('a' + draw(26)));
      Write(kept, offset, text);
      model.replace(offset, count, text);
    }
    ASSERT_EQ(Show(kept, 0, kSpace), model) << "step " << step;
  }
}

}  // namespace
}  // namespace strata::sim
