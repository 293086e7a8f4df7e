// SPDX-License-Identifier: Apache-2.0
//
// ExceptionState: what the C++ runtime keeps per OS thread about exceptions, kept per virtual
// thread.
//
// The Itanium C++ ABI has two words an OS thread: the stack of caught exceptions and the number of
// uncaught ones. A virtual thread that parks inside a catch block takes its words along, and leaves
// zeros for the next one. The address of the words is constant for an OS thread; the dispatcher
// looks it up once, so that no accessor stands on the switch path (GCC declares that accessor
// const, and would fold the call before a switch and the one after it into one).
//
//   Called from   the dispatcher, on the OS thread whose words they are.
//   Suspends      never.
//   Cost          two loads, where no exception is on its way.

#ifndef BOBBIN_CORE_SRC_EXCEPTION_STATE_H_
#define BOBBIN_CORE_SRC_EXCEPTION_STATE_H_

namespace bobbin::internal {

// The two words, as the ABI lays them out.
struct ExceptionGlobals {
  void* caught = nullptr;
  unsigned int uncaught_count = 0;

  bool is_clear() const noexcept { return caught == nullptr && uncaught_count == 0; }

  // Those of the calling OS thread.
  static ExceptionGlobals* OfThisThread() noexcept;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_SRC_EXCEPTION_STATE_H_
