#include "strata/tools/terminal/progress.h"

#include <unistd.h>

#include <cstdio>

namespace strata::tools {
namespace {

constexpr std::chrono::seconds kQuietTime{1};
constexpr std::chrono::milliseconds kRefreshTime{100};

}  // namespace

ProgressLine::ProgressLine()
    : is_terminal_(isatty(STDERR_FILENO) == 1),
      begin_(std::chrono::steady_clock::now()) {}

void ProgressLine::Show(const std::string& text) {
  if (!is_terminal_) return;
  const auto now = std::chrono::steady_clock::now();
  if (now - begin_ < kQuietTime || now - last_ < kRefreshTime) return;
  last_ = now;
  is_shown_ = true;
  std::fprintf(stderr, "\r\033[K%s", text.c_str());
}

void ProgressLine::Clear() {
  if (is_shown_) std::fputs("\r\033[K", stderr);
  is_shown_ = false;
}

}  // namespace strata::tools
