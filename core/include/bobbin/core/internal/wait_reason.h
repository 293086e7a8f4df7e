// SPDX-License-Identifier: Apache-2.0
//
// WaitReason: what a thread waits for, and since when. For dumps.
//
// It lies on the waiting thread's stack, beside what the wait needs anyway, and the thread points
// to it while it is parked: a wait says why it is one in two stores to lines that it writes to in
// any case. Each primitive has a WaitKind, a constant; modules above add their own.
//
//   Called from   the waiting thread; a dump reads it while the thread is parked.
//   Suspends      never.
//   Cost          a few stores. The time is that of the carrier's turn, so that no clock is read:
//                 it may be early by the length of a turn, about 0.1 ms.

#ifndef BOBBIN_CORE_INTERNAL_WAIT_REASON_H_
#define BOBBIN_CORE_INTERNAL_WAIT_REASON_H_

#include <cstdint>

namespace bobbin::internal {

class Thread;

// What WaitReason::object is.
enum class WaitObject : uint8_t {
  kNone,        // Of no interest.
  kAddress,     // The object that is waited at.
  kDescriptor,  // A file descriptor, as a number.
  kTask,        // The Task whose end is waited for.
};

struct WaitKind {
  static constexpr int kNobody = -1;

  const char* name;  // "mutex", "channel receive": as a dump says it.
  WaitObject object;
  // Who alone can end the wait, where that is known: how many bytes into the object lies a word
  // with the address of the Thread that holds it, or zero; its 6 low and 8 high bits may mean
  // something else.
  int holder_word = kNobody;
};

inline constexpr WaitKind kUnnamedWait = {"wait", WaitObject::kNone};

struct WaitReason {
  const WaitKind* kind = &kUnnamedWait;
  const void* object = nullptr;
  int64_t since = 0;  // Monotonic nanoseconds; set when the thread parks.
};

// The holder that such a word names.
inline const Thread* HolderIn(uintptr_t word) noexcept {
  constexpr uintptr_t kAddress = (uintptr_t{1} << 56) - 64;
  return reinterpret_cast<const Thread*>(word & kAddress);
}

// For WaitReason::object of a kind that has a number.
inline const void* WaitNumber(int number) noexcept {
  return reinterpret_cast<const void*>(static_cast<intptr_t>(number));
}

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_WAIT_REASON_H_
