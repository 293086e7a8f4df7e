// SPDX-License-Identifier: Apache-2.0

#include "bench/compare/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <cstdio>

#include "fmt/format.h"

namespace bobbin::compare {
namespace {

// Written by the signal's handler, read by the main thread. It orders nothing.
std::atomic<int> interrupt_signal{0};
static_assert(std::atomic<int>::is_always_lock_free);

void NoteInterrupt(int signal) { interrupt_signal.store(signal, std::memory_order_relaxed); }

size_t TerminalColumns(int fd, size_t otherwise) {
  winsize size{};
  if (ioctl(fd, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return otherwise;
  return size.ws_col;
}

}  // namespace

ProgressLine::ProgressLine() : is_shown_(isatty(STDERR_FILENO) != 0) {}

void ProgressLine::Show(const std::string& text) {
  if (!is_shown_ || text == shown_) return;
  // One column is left free: a full line would wrap.
  const size_t columns = TerminalColumns(STDERR_FILENO, 80) - 1;
  fmt::print(stderr, "\r\x1b[K{}", text.substr(0, columns));
  std::fflush(stderr);
  shown_ = text;
}

void ProgressLine::Clear() {
  if (shown_.empty()) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  shown_.clear();
}

size_t OutputColumns() { return TerminalColumns(STDOUT_FILENO, kColumnsElsewhere); }

void WatchForInterrupts() {
  struct sigaction action {};
  action.sa_handler = &NoteInterrupt;
  // Without SA_RESTART, so that a wait ends at once.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) sigaction(signal, &action, nullptr);
}

int InterruptSignal() { return interrupt_signal.load(std::memory_order_relaxed); }

}  // namespace bobbin::compare
