#include "strata/tools/readers/line_reader.h"

#include <cstring>

#include "strata/tools/trace/trace.h"

namespace strata::tools {
namespace {

// The position of the line end in `text`, or null.
const char* FindEnd(std::string_view text) {
  // An empty buffer may have a null address.
  if (text.empty()) return nullptr;
  return static_cast<const char*>(std::memchr(text.data(), '\n', text.size()));
}

}  // namespace

bool LineReader::Next(std::string_view* line) {
  input_.Consume(returned_);
  returned_ = 0;
  std::size_t scanned = 0;
  const char* end = nullptr;
  while (true) {
    end = FindEnd({input_.data() + scanned, input_.size() - scanned});
    if (end != nullptr) break;
    scanned = input_.size();
    if (scanned > kMaxLineBytes) {
      *line = TakeLongLine();
      return true;
    }
    if (!Fill()) break;
  }
  if (end == nullptr && input_.is_cut()) {
    if (line_ == 0) throw TraceError(input_.path(), 1, kGzipCutReason);
    return false;
  }
  const char* const begin = input_.data();
  std::size_t bytes = input_.size();
  returned_ = bytes;
  is_unended_ = end == nullptr;
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

std::string_view LineReader::TakeLongLine() {
  long_line_.assign(input_.data(), kLongLineBytes);
  const char* end = nullptr;
  do {
    end = FindEnd({input_.data(), input_.size()});
    const std::size_t taken =
        end == nullptr ? input_.size()
                       : static_cast<std::size_t>(end - input_.data()) + 1;
    input_.Consume(taken);
  } while (end == nullptr && Fill());
  is_unended_ = end == nullptr;
  ++line_;
  return long_line_;
}

bool LineReader::Fill() {
  try {
    return input_.Fill();
  } catch (const InputError& error) {
    throw TraceError(input_.path(), line_ + 1, error.what());
  }
}

}  // namespace strata::tools
