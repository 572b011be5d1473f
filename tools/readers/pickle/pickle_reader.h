#ifndef STRATA_TOOLS_READERS_PICKLE_PICKLE_READER_H_
#define STRATA_TOOLS_READERS_PICKLE_PICKLE_READER_H_

#include <cstdint>
#include <string_view>
#include <vector>

#include "strata/tools/readers/input_buffer.h"
#include "strata/tools/readers/pickle/pickle_tree.h"

namespace strata::tools {

struct PickleOptions {
  // Only values of these keys of dicts are stored. All others are discarded.
  std::vector<std::string_view> keys;
  // For a container under such a key, only the number of items is stored.
  std::vector<std::string_view> counted_keys;
  // True: an object, or another value that is no plain data, becomes a value
  // without content (PickleValue::Kind::kObject). False: such a value is an
  // error, and so are bytes after the pickle.
  bool allows_objects = false;
  // Limit on the memory of the tree and the machine that builds it.
  std::uint64_t max_bytes = std::uint64_t{8} << 30;
};

// Reads a pickle of protocol 2 to 5 that contains only None, bools, ints,
// floats, text, bytes, lists, tuples and dicts.
//
// Model: nothing is executed or imported. An opcode that requests that is an
//   error, and so is any other opcode that plain data does not need. With
//   allows_objects it creates a value without content instead. Frames are
//   skipped. A value that is read twice through the memo is stored once.
// Errors: TraceError, "file: offset N: OPCODE (0x52): reason", where N is the
//   number of uncompressed bytes before the opcode.
// Cost: O(file) time; no recursion, whatever the nesting depth. 16 bytes per
//   stored item and 64 per stored container, and each text once.
PickleTree ReadPickle(InputBuffer& input, const PickleOptions& options);

}  // namespace strata::tools

#endif  // STRATA_TOOLS_READERS_PICKLE_PICKLE_READER_H_
