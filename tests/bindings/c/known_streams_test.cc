#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>

#include "strata/bindings/c/c_api_call.h"

namespace strata {
namespace {

Stream StreamAt(std::uintptr_t handle, std::uint64_t uid) {
  return Stream{reinterpret_cast<void*>(handle), 0, uid};
}

std::uint64_t UidAt(const KnownStreams& streams, std::uintptr_t handle) {
  return streams.Find(reinterpret_cast<void*>(handle)).uid;
}

TEST(KnownStreamsTest, KnowsWhatWasAdded) {
  KnownStreams streams;
  EXPECT_EQ(UidAt(streams, 64), 0U);
  for (std::uint64_t i = 1; i <= 500; ++i) streams.Add(StreamAt(64 * i, i));
  for (std::uint64_t i = 1; i <= 500; ++i) EXPECT_EQ(UidAt(streams, 64 * i), i);
}

TEST(KnownStreamsTest, AHandleCanComeBackAsAnotherStream) {
  KnownStreams streams;
  streams.Add(StreamAt(64, 1));
  streams.Add(StreamAt(128, 2));
  streams.Remove(reinterpret_cast<void*>(64));
  streams.Remove(reinterpret_cast<void*>(64));  // no effect
  EXPECT_EQ(UidAt(streams, 64), 0U);
  streams.Add(StreamAt(192, 3));
  streams.Add(StreamAt(64, 4));
  EXPECT_EQ(UidAt(streams, 64), 4U);
  EXPECT_EQ(UidAt(streams, 128), 2U);
  EXPECT_EQ(UidAt(streams, 192), 3U);
}

TEST(KnownStreamsTest, RemovesAStreamOnlyIfTheHandleStillNamesIt) {
  KnownStreams streams;
  streams.Add(StreamAt(64, 2));
  streams.Remove(StreamAt(64, 1));   // lost before the handle came back
  streams.Remove(StreamAt(128, 3));  // unknown
  EXPECT_EQ(UidAt(streams, 64), 2U);
  streams.Remove(StreamAt(64, 2));
  EXPECT_EQ(UidAt(streams, 64), 0U);
}

TEST(KnownStreamsTest, ReadersFindTheirsWhileOthersComeAndGo) {
  KnownStreams streams;
  for (std::uint64_t i = 1; i <= 100; ++i) streams.Add(StreamAt(64 * i, i));
  std::atomic<bool> is_over{false};
  std::atomic<int> wrong{0};
  std::thread reader([&] {
    do {
      for (std::uint64_t i = 1; i <= 100; ++i) {
        wrong += UidAt(streams, 64 * i) != i;
      }
    } while (!is_over);
  });
  for (std::uint64_t i = 0; i < 2000; ++i) {
    streams.Add(StreamAt(64 * (1000 + i % 50), 1000 + i));
    streams.Remove(reinterpret_cast<void*>(64 * (1000 + i % 50)));
  }
  is_over = true;
  reader.join();
  EXPECT_EQ(wrong, 0);
  for (std::uint64_t i = 1; i <= 100; ++i) EXPECT_EQ(UidAt(streams, 64 * i), i);
}

}  // namespace
}  // namespace strata
