// SPDX-License-Identifier: Apache-2.0
//
// Limits: the bounds of db, each with its reason.

#ifndef BOBBIN_DB_SRC_LIMITS_H_
#define BOBBIN_DB_SRC_LIMITS_H_

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"

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

// For so long a commit waits for statements that read, when the log has become too large. Longer
// than nearly all of them take; not tuned.
inline constexpr std::chrono::milliseconds kLogWaitMax(100);

// SQLite counts the bytes of a text in an int, and takes up to a billion by itself.
inline constexpr size_t kSqlBytesMax = 1'000'000'000;

// Of a statement's text, in messages.
inline constexpr size_t kSqlBytesShown = 80;

// More connections of one process than this only wait for each other.
inline constexpr size_t kSqliteReadersMax = 256;

// PostgreSQL counts the values of a statement in 16 bits, and the bytes of one in 30.
inline constexpr size_t kPgValuesMax = 65535;
inline constexpr size_t kPgValueBytesMax = (size_t{1} << 30) - 1;

// What an idle server connection may have to say is read so often before it counts as alive. Not
// tuned: as a rule there is nothing.
inline constexpr int kPgReadsOfIdleMax = 16;

// How long a statement is waited for that was to end, before the server is asked again; twice as
// long each time after that. A server that has to be asked more than once was not asked in vain: it
// had not begun.
inline constexpr std::chrono::milliseconds kPgCancelPause(2);

// What a stream hands over at once, if so much has come. Not tuned.
inline constexpr size_t kPgStreamRowsMax = 512;
inline constexpr size_t kPgStreamBytesMax = size_t{64} << 10;

// What a copy leaves unsent before it waits for room; as much as a socket takes at once.
inline constexpr size_t kPgCopyBytesMax = size_t{64} << 10;

// Between two tries of a listener to connect again.
inline constexpr std::chrono::milliseconds kPgReconnectPauseMin(10);
inline constexpr std::chrono::milliseconds kPgReconnectPauseMax(5'000);

// Of those who hold a connection, in messages.
inline constexpr size_t kHoldersShown = 16;

// Before a transaction is tried again the first time, and at most; about twice as long each time.
inline constexpr absl::Duration kRetryPauseMin = absl::Milliseconds(2);
inline constexpr absl::Duration kRetryPauseMax = absl::Milliseconds(128);

// More connections of one process than this are more than a server has, as a rule.
inline constexpr size_t kPoolConnectionsMax = 10'000;

// Longer times of a pool's connections are this long: they are added up in nanoseconds.
inline constexpr std::chrono::hours kPoolTimeMax(24 * 366);

// The stack that libmariadb makes for each connection; of it as much is used as is needed. Its own
// choice of 60 KiB leaves OpenSSL little room.
inline constexpr size_t kMySqlStackBytes = size_t{256} << 10;

// MySQL counts the values of a statement in 16 bits.
inline constexpr size_t kMySqlValuesMax = 65535;

// How long a statement is waited for that was to end, before the server is asked again; twice as
// long each time after that. Each time takes a connection.
inline constexpr std::chrono::milliseconds kMySqlCancelPause(10);

// Behind the first message of a key that a batch of an outbox has, it takes along those of the next
// so many numbers: a bound for what a claim has to look at. Not tuned.
inline constexpr int64_t kOutboxFollowersWithin = 1000;

// Between two tries of a relay, or a runner of a queue, whose database is away.
inline constexpr std::chrono::milliseconds kQueuePauseMin(50);
inline constexpr std::chrono::milliseconds kQueuePauseMax(1'000);

// What a runner makes ready in one statement. Not tuned.
inline constexpr int kQueuePromotedMax = 1000;

// How often a runner that has enough to do looks all the same for what has become due.
inline constexpr std::chrono::milliseconds kQueuePromoteEvery(50);

// How long one attempt of a runner takes at most to write down the end of a task.
inline constexpr std::chrono::seconds kQueueSettleMax(5);

// How often a unique key is tried that comes and goes.
inline constexpr int kQueueUniqueTries = 8;

// Longer leases and pauses are this long: times are added up in nanoseconds.
inline constexpr absl::Duration kQueueTimeMax = absl::Hours(24 * 366);

// How often those count what is in their table, for metrics.
inline constexpr std::chrono::seconds kQueueCountEvery(10);

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_LIMITS_H_
