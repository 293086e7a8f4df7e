// SPDX-License-Identifier: Apache-2.0

#include <cxxabi.h>
#include <ucontext.h>
#include <unwind.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "absl/debugging/symbolize.h"

#include <bobbin/core/internal/backtrace.h>

#include "core/src/standard_error.h"

#if defined(__x86_64__) && defined(__linux__)

// Calls _Unwind_Backtrace(visit, argument) as if from the place at which `context` was left.
extern "C" _Unwind_Reason_Code bobbin_walk_parked(const void* context, _Unwind_Trace_Fn visit,
                                                  void* argument) noexcept;

// What jump_fcontext has stored at a context: the control words, r12 to r15, rbx, rbp and the
// address to return to; above them lies the frame that it was called from. So the directives need
// only say where: the canonical frame address of "our caller" is right above, and its registers are
// at fixed distances below it. They hold for the one instruction from which the walk begins.
__asm__(
    ".text\n"
    ".globl bobbin_walk_parked\n"
    ".hidden bobbin_walk_parked\n"
    ".type bobbin_walk_parked, @function\n"
    ".balign 16\n"
    "bobbin_walk_parked:\n"
    "  .cfi_startproc\n"
    "  pushq %rbx\n"
    "  .cfi_adjust_cfa_offset 8\n"
    "  .cfi_rel_offset rbx, 0\n"
    "  movq %rdi, %rbx\n"
    "  movq %rsi, %rdi\n"
    "  movq %rdx, %rsi\n"
    "  .cfi_remember_state\n"
    "  .cfi_def_cfa rbx, 0x40\n"
    "  .cfi_offset rip, -0x08\n"
    "  .cfi_offset rbp, -0x10\n"
    "  .cfi_offset rbx, -0x18\n"
    "  .cfi_offset r15, -0x20\n"
    "  .cfi_offset r14, -0x28\n"
    "  .cfi_offset r13, -0x30\n"
    "  .cfi_offset r12, -0x38\n"
    "  call _Unwind_Backtrace@PLT\n"
    "  .cfi_restore_state\n"
    "  popq %rbx\n"
    "  .cfi_adjust_cfa_offset -8\n"
    "  .cfi_restore rbx\n"
    "  ret\n"
    "  .cfi_endproc\n"
    ".size bobbin_walk_parked, .-bobbin_walk_parked\n");

#endif

namespace bobbin::internal {

// One walk: what it has found, and where to begin to keep it.
struct Backtrace::Walk {
  Backtrace& found;
  size_t skipped;                   // So many frames first.
  const void* begins_at = nullptr;  // Or, if this is set, all before this address.

  static _Unwind_Reason_Code Visit(_Unwind_Context* context, void* argument) noexcept {
    auto& walk = *static_cast<Walk*>(argument);
    const auto* const address = reinterpret_cast<const void*>(_Unwind_GetIP(context));
    if (walk.begins_at != nullptr) {
      if (address != walk.begins_at) return _URC_NO_REASON;
      walk.begins_at = nullptr;
    } else if (walk.skipped > 0) {
      --walk.skipped;
      return _URC_NO_REASON;
    }
    // What an outermost frame is said to return to.
    if (address == nullptr) return _URC_END_OF_STACK;
    Backtrace& found = walk.found;
    if (found.count_ == kFramesMax) {
      found.is_cut_ = true;
      return _URC_END_OF_STACK;
    }
    found.frames_[found.count_++] = address;
    return _URC_NO_REASON;
  }
};

Backtrace Backtrace::OfCaller() noexcept {
  Backtrace found;
  Walk walk{.found = found, .skipped = 1};
  _Unwind_Backtrace(&Walk::Visit, &walk);
  return found;
}

Backtrace Backtrace::OfParked([[maybe_unused]] const void* context) noexcept {
  Backtrace found;
#if defined(__x86_64__) && defined(__linux__)
  // The walker itself, and the switch.
  Walk walk{.found = found, .skipped = 2};
  bobbin_walk_parked(context, &Walk::Visit, &walk);
#endif
  return found;
}

Backtrace Backtrace::OfInterrupted([[maybe_unused]] const void* context) noexcept {
  Backtrace found;
#if defined(__x86_64__) && defined(__linux__)
  const greg_t address = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP];
  Walk walk{.found = found, .skipped = 0, .begins_at = reinterpret_cast<const void*>(address)};
  _Unwind_Backtrace(&Walk::Visit, &walk);
  if (!found.empty()) return found;
  // A sanitizer has put the handler off, and calls it from somewhere else.
  Walk whole{.found = found, .skipped = 1};
  _Unwind_Backtrace(&Walk::Visit, &whole);
#endif
  return found;
}

void PrepareUnwinder() noexcept {
  static const bool is_prepared = !Backtrace::OfCaller().empty();
  static_cast<void>(is_prepared);
}

namespace {

constexpr size_t kNameBytesMax = 1024;

// A return address is behind the call, perhaps in the next function.
const void* CallBefore(const void* frame) noexcept {
  return reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(frame) - 1);
}

std::string_view Hexadecimal(const void* address, std::array<char, 20>& digits) noexcept {
  digits = {'0', 'x'};
  const auto end = std::to_chars(digits.data() + 2, digits.data() + digits.size(),
                                 reinterpret_cast<uintptr_t>(address), 16)
                       .ptr;
  return {digits.data(), static_cast<size_t>(end - digits.data())};
}

// The names of what a compiler split off, such as `Serve() [clone .cold]`, are the function's.
std::string_view WithoutClone(std::string_view name) noexcept {
  return name.substr(0, name.find(" [clone"));
}

}  // namespace

std::string FrameName(const void* frame) {
  std::array<char, kNameBytesMax> name;
  if (!absl::Symbolize(CallBefore(frame), name.data(), static_cast<int>(name.size()))) return {};
  const std::string_view plain = WithoutClone(name.data());
  if (!plain.starts_with("_Z")) return std::string(plain);
  // The compiler's library knows some names that the symbolizer, which may not allocate, does not.
  int status = 0;
  char* const demangled =
      abi::__cxa_demangle(std::string(plain).c_str(), nullptr, nullptr, &status);
  std::string known(status == 0 ? std::string_view(demangled) : plain);
  std::free(demangled);
  return known;
}

void AppendFrame(std::string& text, const void* frame) {
  std::array<char, 20> digits;
  text.append(Hexadecimal(frame, digits));
  const std::string name = FrameName(frame);
  text.append(" ").append(name.empty() ? "?" : name);
}

void WriteFrames(const Backtrace& backtrace) noexcept {
  for (const void* const frame : backtrace.frames()) {
    std::array<char, 20> digits;
    std::array<char, kNameBytesMax> name;
    WriteError("  ");
    WriteError(Hexadecimal(frame, digits));
    WriteError(" ");
    const bool has_name =
        absl::Symbolize(CallBefore(frame), name.data(), static_cast<int>(name.size()));
    WriteError(has_name ? WithoutClone(name.data()) : "?");
    WriteError("\n");
  }
}

}  // namespace bobbin::internal
