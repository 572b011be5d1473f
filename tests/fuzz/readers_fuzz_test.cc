// The checks of the fuzz targets, in every build: seeded mutations of complete
// and of malformed files.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "strata/tests/fuzz/read_any.h"
#include "strata/tests/testing/models/stress_settings.h"
#include "strata/tests/tools/readers/snapshot/snapshot_files.h"

namespace strata {
namespace {

constexpr std::uint64_t kMutations = 20000;

// A file with some bytes changed, removed, repeated, or copied from another
// file.
class Mutator {
 public:
  Mutator(const std::vector<std::string>& seeds, std::uint64_t seed)
      : seeds_(seeds), random_(seed) {}

  std::string Next() {
    std::string content = seeds_[Below(seeds_.size())];
    for (std::size_t i = 1 + Below(4); i > 0; --i) {
      if (!content.empty()) Mutate(content);
    }
    return content;
  }

 private:
  std::size_t Below(std::size_t bound) { return random_() % bound; }

  void Mutate(std::string& content) {
    const std::size_t at = Below(content.size());
    const std::size_t count = std::min(content.size() - at, 1 + Below(16));
    switch (Below(6)) {
      case 0:
        content[at] = static_cast<char>(Below(256));
        return;
      case 1:
        content[at] = static_cast<char>(content[at] ^ 1 << Below(8));
        return;
      case 2:
        content.erase(at, count);
        return;
      case 3:
        content.insert(at, content.substr(at, count));
        return;
      case 4:
        content.resize(at);
        return;
      default: {
        const std::string& other = seeds_[Below(seeds_.size())];
        content.insert(at, other.substr(Below(other.size() + 1), count));
      }
    }
  }

  const std::vector<std::string>& seeds_;
  std::mt19937_64 random_;
};

class ReadersFuzzTest : public ::testing::Test {
 protected:
  ReadersFuzzTest() {
    // Files of a few kilobytes, so that a change is likely to matter.
    const tools::SnapshotFiles files(12);
    std::vector<std::filesystem::path> paths;
    for (const auto& file :
         std::filesystem::recursive_directory_iterator(files.folder())) {
      if (file.is_regular_file() && file.path().extension() != ".error") {
        paths.push_back(file.path().lexically_relative(files.folder()));
      }
    }
    // The order of a directory differs between systems.
    std::sort(paths.begin(), paths.end());
    for (const auto& path : paths) seeds_.push_back(files.Read(path));
  }

  // Number of mutated files that `read` accepts.
  template <class Read>
  std::uint64_t ReadMutations(const Read& read) {
    const std::uint64_t mutations = StressOperations(kMutations);
    Mutator mutator(seeds_, StressSeed());
    std::uint64_t taken = 0;
    for (std::uint64_t i = 0; i < mutations; ++i) {
      const std::string content = mutator.Next();
      try {
        if (read(content)) ++taken;
      } catch (const std::exception& error) {
        ADD_FAILURE() << "mutation " << i << ": " << error.what();
        break;
      }
    }
    return taken;
  }

  std::vector<std::string> seeds_;
};

TEST_F(ReadersFuzzTest, SeedsAreReadOrRefused) {
  std::size_t traces = 0;
  std::size_t strict_traces = 0;
  for (const std::string& seed : seeds_) {
    ASSERT_NO_THROW(ReadAnyPickle(seed));
    ASSERT_NO_THROW(traces += ReadAnyTrace(seed) ? 1 : 0);
    ASSERT_NO_THROW(strict_traces += ReadTraceStrictly(seed, true) ? 1 : 0);
  }
  // Two snapshots in four protocols, and five logs; and malformed snapshots
  // that are partly usable.
  EXPECT_EQ(strict_traces, 13U);
  EXPECT_EQ(traces, 25U);
}

TEST_F(ReadersFuzzTest, MutatedPicklesAreReadOrRefused) {
  EXPECT_GT(ReadMutations(&ReadAnyPickle), 0U);
}

TEST_F(ReadersFuzzTest, MutatedTracesAreReadOrRefused) {
  EXPECT_GT(ReadMutations(&ReadAnyTrace), 0U);
}

}  // namespace
}  // namespace strata
