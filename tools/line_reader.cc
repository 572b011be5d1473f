#include "strata/tools/line_reader.h"

#include <cstring>

#include "strata/tools/trace.h"

namespace strata {

bool LineReader::Next(std::string_view* line) {
  input_.Consume(returned_);
  std::size_t scanned = 0;
  const char* end = nullptr;
  while (true) {
    const std::size_t unscanned = input_.size() - scanned;
    // An empty buffer need not have an address.
    end = unscanned == 0 ? nullptr
                         : static_cast<const char*>(std::memchr(
                               input_.data() + scanned, '\n', unscanned));
    if (end != nullptr) break;
    scanned = input_.size();
    if (!Fill()) break;
  }
  const char* const begin = input_.data();
  std::size_t bytes = input_.size();
  returned_ = bytes;
  if (end != nullptr) {
    bytes = static_cast<std::size_t>(end - begin);
    returned_ = bytes + 1;
  } else if (bytes == 0) {
    return false;
  }
  ++line_;
  if (bytes > 0 && begin[bytes - 1] == '\r') --bytes;
  *line = std::string_view(begin, bytes);
  if (line_ == 1 && line->starts_with(kByteOrderMark)) {
    line->remove_prefix(kByteOrderMark.size());
  }
  return true;
}

bool LineReader::Fill() {
  try {
    if (input_.size() > kMaxLineBytes) {
      throw InputError("the line is too long for a trace");
    }
    return input_.Fill();
  } catch (const InputError& error) {
    throw TraceError(input_.path(), line_ + 1, error.what());
  }
}

}  // namespace strata
