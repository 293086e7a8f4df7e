// SPDX-License-Identifier: Apache-2.0
//
// Limits: the bounds of db, each with its reason.

#ifndef BOBBIN_DB_SRC_LIMITS_H_
#define BOBBIN_DB_SRC_LIMITS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace bobbin::db::internal {

// A running statement looks so often, in steps of SQLite's machine, whether it is to stop: every 20
// to 100 us. Not tuned; the look itself is a few loads.
inline constexpr int kProgressSteps = 1000;

// A lock of another process is looked at again after 0.5 ms, then after twice as long each time, up
// to this: so late a statement that waits for one notices that it is to stop.
inline constexpr std::chrono::microseconds kBusyDelayMin(500);
inline constexpr std::chrono::microseconds kBusyDelayMax(20'000);

// What stays of the write-ahead log's file when a checkpoint has emptied it. A burst may make it
// grow beyond; it then shrinks to this.
inline constexpr int64_t kJournalBytesKept = int64_t{64} << 20;

// SQLite counts the bytes of a text in an int, and takes up to a billion by itself.
inline constexpr size_t kSqlBytesMax = 1'000'000'000;

// Of a statement's text, in messages.
inline constexpr size_t kSqlBytesShown = 80;

// More connections of one process than this only wait for each other.
inline constexpr size_t kSqliteReadersMax = 256;

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_LIMITS_H_
