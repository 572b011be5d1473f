// A target of libFuzzer; see read_any.h.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "strata/tests/fuzz/read_any.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  strata::CheckAnyCalls({reinterpret_cast<const char*>(data), size});
  return 0;
}
