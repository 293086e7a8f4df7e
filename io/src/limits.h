// SPDX-License-Identifier: Apache-2.0
//
// Limits: the bounds of io, each with its reason.

#ifndef BOBBIN_IO_SRC_LIMITS_H_
#define BOBBIN_IO_SRC_LIMITS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace bobbin::io::internal {

// A ring that the kernel has no memory for is asked for again with half the size, down to this.
inline constexpr uint32_t kRingEntriesMin = 4;

// How often a poll enters the kernel again because work that was deferred completed nothing.
inline constexpr int kPollRoundsMax = 8;

// How many system calls virtual threads may make themselves between two polls; after that a writer
// that never has to wait goes through the ring and lets others run. Not tuned.
inline constexpr int kCallsPerPollMax = 16;

// How many system calls a virtual thread may make in a row with epoll, before others run. Not
// tuned.
inline constexpr int kCallsInARowMax = 16;

// How many events an epoll takes at a time; the rest waits for the next poll. Not tuned.
inline constexpr size_t kEventsPerPoll = 256;

// How many connections an epoll takes from one listener in a poll. Not tuned.
inline constexpr int kAcceptsPerPollMax = 64;

// The most one operation moves: the kernel takes a 32-bit length and moves less than 2 GiB.
inline constexpr size_t kTransferBytesMax = size_t{1} << 30;

// Connections that a listener accepts ahead of those who ask for them: at the first number it
// stops, so that the kernel's backlog holds the peers back; at the second it goes on. The first
// bound is soft, for the kernel may deliver what it had ready before it sees the stop.
inline constexpr size_t kAcceptedMax = 256;
inline constexpr size_t kAcceptedResume = 64;

// The same of datagrams that a ring receives ahead of whoever asks: so many buffers of the
// carrier's, of which the kernel is offered twice as many. Not tuned.
inline constexpr size_t kAheadMax = 64;
inline constexpr size_t kAheadResume = 16;

// How long an acceptor lets pass after the process ran out of descriptors or memory. Not tuned.
inline constexpr std::chrono::milliseconds kAcceptPause{10};

// How long a connect to a full queue of the machine's own waits before it asks again: first, and in
// the long run. Not tuned.
inline constexpr std::chrono::milliseconds kConnectPauseMin{1};
inline constexpr std::chrono::milliseconds kConnectPauseMax{16};

// How much of a file one system call reads or writes: a thread that is to stop waits for so much at
// most. A disk takes a few milliseconds. Not tuned.
inline constexpr size_t kFilePieceBytes = size_t{1} << 20;

// Parts of a read or write in one system call; the kernel takes up to 1024. They lie on the stack
// of whoever reads or writes.
inline constexpr size_t kVectorsMax = 64;

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_LIMITS_H_
