#ifndef STRATA_TOOLS_READERS_PICKLE_PICKLE_SOURCE_H_
#define STRATA_TOOLS_READERS_PICKLE_PICKLE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "strata/tools/readers/input_buffer.h"
#include "strata/tools/readers/pickle/pickle_opcode.h"
#include "strata/tools/readers/pickle/pickle_tree.h"

namespace strata::tools {

// The bytes of a pickle, opcode by opcode, and the position of errors.
//
// Errors: TraceError, as ReadPickle; also InputError, for which AtEndOfInput()
//   sets the position.
class PickleSource {
 public:
  explicit PickleSource(InputBuffer& input) : input_(input) {}

  // Offset of the current opcode.
  std::uint64_t offset_of_opcode() const { return offset_of_opcode_; }
  [[noreturn]] void Fail(const std::string& reason) const;
  // "offset 7: BINGET (0x68): ", for the current opcode.
  std::string Place() const;

  // Bytes taken so far.
  std::uint64_t offset() const { return offset_; }

  // Begins the next opcode, which has not been read yet.
  void BeginOpcode() {
    offset_of_opcode_ = offset_;
    opcode_.reset();
  }
  // Sets the position of errors to the end of the data read so far.
  void AtEndOfInput() {
    offset_of_opcode_ = offset_ + input_.size();
    opcode_.reset();
  }
  PickleOpcode TakeOpcode() {
    opcode_ = static_cast<PickleOpcode>(Take(1).front());
    return *opcode_;
  }

  // Whether `bytes` more bytes are available.
  bool Available(std::uint64_t bytes);
  // The next bytes, at most `most`, without consuming them.
  std::string_view Peek(std::size_t most);
  // Valid until the next bytes are taken.
  std::string_view Take(std::uint64_t bytes);
  void Skip(std::uint64_t bytes);
  // Consumes bytes up to and including a line end, as in opcodes of text.
  void SkipLine();
  // An unsigned little-endian number.
  std::uint64_t Number(std::size_t bytes);
  // An integer of `bytes` bytes in two's complement.
  PickleValue Long(std::uint64_t bytes);

 private:
  InputBuffer& input_;
  std::uint64_t offset_ = 0;  // of the next byte
  std::uint64_t offset_of_opcode_ = 0;
  std::optional<PickleOpcode> opcode_;  // the current opcode
};

}  // namespace strata::tools

#endif  // STRATA_TOOLS_READERS_PICKLE_PICKLE_SOURCE_H_
