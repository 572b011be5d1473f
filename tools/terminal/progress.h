#ifndef STRATA_TOOLS_TERMINAL_PROGRESS_H_
#define STRATA_TOOLS_TERMINAL_PROGRESS_H_

#include <chrono>
#include <string>

namespace strata::tools {

// One line on stderr with the progress of a long command. Shown only if stderr
// is a terminal, and only after the first second.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine() { Clear(); }
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  // Replaces the text of the line.
  void Show(const std::string& text);
  // Clears the line for other output.
  void Clear();

 private:
  const bool is_terminal_;
  const std::chrono::steady_clock::time_point begin_;
  std::chrono::steady_clock::time_point last_;  // time of the last update
  bool is_shown_ = false;
};

}  // namespace strata::tools

#endif  // STRATA_TOOLS_TERMINAL_PROGRESS_H_
