#ifndef STRATA_TESTS_TESTING_CHOICES_H_
#define STRATA_TESTS_TESTING_CHOICES_H_

#include <cstddef>
#include <cstdint>
#include <random>
#include <string_view>

namespace strata {

// Source of the choices of a random program: a seed, or the bytes that a fuzzer
//   changes.
class Choices {
 public:
  explicit Choices(std::uint64_t seed) : engine_(seed) {}
  // `bytes` must outlive this object. When the bytes are used up, every choice
  // is 0.
  explicit Choices(std::string_view bytes) : bytes_(bytes), has_bytes_(true) {}

  // Returns a number below `bound`. `bound` is at least 1.
  std::size_t Below(std::size_t bound) {
    if (!has_bytes_) return engine_() % bound;
    std::size_t number = 0;
    for (std::size_t most = 1; most < bound; most <<= 8) {
      number = number << 8 | Byte();
      if (most > bound >> 8) break;
    }
    return number % bound;
  }

  // True if the bytes are used up. Always false with a seed.
  bool exhausted() const { return has_bytes_ && at_ >= bytes_.size(); }

 private:
  std::size_t Byte() {
    return at_ < bytes_.size() ? static_cast<unsigned char>(bytes_[at_++]) : 0;
  }

  std::mt19937_64 engine_;
  std::string_view bytes_;
  std::size_t at_ = 0;
  bool has_bytes_ = false;
};

}  // namespace strata

#endif  // STRATA_TESTS_TESTING_CHOICES_H_
