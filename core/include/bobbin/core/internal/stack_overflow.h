// SPDX-License-Identifier: Apache-2.0
//
// StackOverflow: a virtual thread that runs into its guard page is named before the process ends.
//
// The guard turns an overflow into SIGSEGV at a known address. The handler runs on a stack of its
// own, which every carrier must have (SignalStack); it writes the thread's name, number, stack
// bounds and return addresses with nothing but write(2), and then lets the signal take its course.
// Faults elsewhere go to the handler that was there before.
//
//   Called from   InstallStackOverflowReport: any thread, any number of times. SignalStack: a
//                 carrier.
//   Suspends      never.

#ifndef BOBBIN_CORE_INTERNAL_STACK_OVERFLOW_H_
#define BOBBIN_CORE_INTERNAL_STACK_OVERFLOW_H_

namespace bobbin::internal {

// Installs the handler for the process, once.
void InstallStackOverflowReport() noexcept;

// Gives the calling OS thread a stack for signal handlers, for a scope.
class SignalStack {
 public:
  SignalStack() noexcept;
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;
  ~SignalStack();

 private:
  void* memory_;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_STACK_OVERFLOW_H_
