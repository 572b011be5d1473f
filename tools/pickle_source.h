#ifndef STRATA_TOOLS_PICKLE_SOURCE_H_
#define STRATA_TOOLS_PICKLE_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "strata/tools/input_buffer.h"
#include "strata/tools/pickle_opcode.h"
#include "strata/tools/pickle_tree.h"

namespace strata {

// The bytes of a pickle, opcode by opcode, and where an error is.
//
// Errors: TraceError, as ReadPickle; also InputError, which AtEndOfInput()
//   gives a place.
class PickleSource {
 public:
  explicit PickleSource(InputBuffer& input) : input_(input) {}

  // Of the opcode being done.
  std::uint64_t offset_of_opcode() const { return offset_of_opcode_; }
  [[noreturn]] void Fail(const std::string& reason) const;
  // "offset 7: BINGET (0x68): ", of the opcode being done.
  std::string Place() const;

  // Bytes taken so far.
  std::uint64_t offset() const { return offset_; }

  // Begins with the next opcode, of which nothing is known yet.
  void BeginOpcode() {
    offset_of_opcode_ = offset_;
    opcode_.reset();
  }
  // What is wrong is behind all that was read.
  void AtEndOfInput() {
    offset_of_opcode_ = offset_ + input_.size();
    opcode_.reset();
  }
  PickleOpcode TakeOpcode() {
    opcode_ = static_cast<PickleOpcode>(Take(1).front());
    return *opcode_;
  }

  // Whether there are so many more.
  bool Available(std::uint64_t bytes);
  // Those to come, at most so many, which stay.
  std::string_view Peek(std::size_t most);
  // Valid until the next bytes are taken.
  std::string_view Take(std::uint64_t bytes);
  void Skip(std::uint64_t bytes);
  // Takes bytes up to a line's end and the end, as opcodes of text have.
  void SkipLine();
  // An unsigned little-endian number.
  std::uint64_t Number(std::size_t bytes);
  // A whole number of `bytes` bytes in two's complement.
  PickleValue Long(std::uint64_t bytes);

 private:
  InputBuffer& input_;
  std::uint64_t offset_ = 0;  // of the next byte
  std::uint64_t offset_of_opcode_ = 0;
  std::optional<PickleOpcode> opcode_;  // the one being done
};

}  // namespace strata

#endif  // STRATA_TOOLS_PICKLE_SOURCE_H_
