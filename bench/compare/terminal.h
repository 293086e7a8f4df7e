// SPDX-License-Identifier: Apache-2.0
//
// Terminal: what the program shows while it runs, and whether someone wants it to end.
//
// The progress is one line on standard error that is written over and over, and only where standard
// error is a terminal.
//
//   Called from   the main thread.
//   Suspends      never.

#ifndef BOBBIN_BENCH_COMPARE_TERMINAL_H_
#define BOBBIN_BENCH_COMPARE_TERMINAL_H_

#include <cstddef>
#include <string>

namespace bobbin::compare {

class ProgressLine {
 public:
  ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  ~ProgressLine() { Clear(); }

  // Shows `text` in place of what was there.
  void Show(const std::string& text);
  // Takes it away, to make room for output.
  void Clear();

 private:
  const bool is_shown_;
  std::string shown_;
};

// How wide standard output is; kColumnsElsewhere where it is no terminal.
inline constexpr size_t kColumnsElsewhere = 120;
size_t OutputColumns();

// From now on a Ctrl-C, or a request to terminate, is only noted.
void WatchForInterrupts();

// The signal that was noted, or 0.
int InterruptSignal();

}  // namespace bobbin::compare

#endif  // BOBBIN_BENCH_COMPARE_TERMINAL_H_
