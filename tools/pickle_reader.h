#ifndef STRATA_TOOLS_PICKLE_READER_H_
#define STRATA_TOOLS_PICKLE_READER_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "strata/tools/input_buffer.h"
#include "strata/tools/pickle_tree.h"

namespace strata {

struct PickleOptions {
  // Only these keys of dicts are kept. What the others hold is forgotten.
  std::vector<std::string_view> keys;
  // The same, but of a container under such a key the number of items stays.
  std::vector<std::string_view> counted_keys;
  // True: an object, or another value that is no plain data, becomes a value
  // without content (PickleValue::Kind::kObject). False: it is an error, and so
  // are bytes behind the pickle.
  bool allows_objects = false;
  // What the tree and the machine that builds it may take.
  std::uint64_t max_bytes = std::uint64_t{8} << 30;
};

// Reads a pickle of protocol 2 to 5 that holds nothing but None, bools, ints,
// floats, text, bytes, lists, tuples and dicts.
//
// Model: nothing is executed or imported. An opcode that asks for that is an
//   error, as is every other that plain data does not need; or it makes a
//   value without content (allows_objects). Frames are passed over. What is
//   read twice through the memo is one value.
// Errors: TraceError, "file: offset N: OPCODE (0x52): reason", N counting the
//   uncompressed bytes before the opcode.
// Cost: O(file) time; no recursion, however deep the values lie in each other.
//   16 bytes per item and 64 per container that is kept, and each text once.
PickleTree ReadPickle(InputBuffer& input, const PickleOptions& options);

}  // namespace strata

#endif  // STRATA_TOOLS_PICKLE_READER_H_
