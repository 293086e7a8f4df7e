// SPDX-License-Identifier: Apache-2.0
//
// MySqlServer: where a MySQL or MariaDB server is, and how one gets along with it.
//
// The host's name is looked up anew for each connection, so that a failover is seen; its addresses
// are tried in their order. No file of options is read.
//
// Encryption is off unless asked for, and what was asked for is never done without: a server that
// has no TLS, or not the right certificate, is refused before it is told a password. libmariadb has
// the process ignore SIGPIPE, in all modes.
//
// As a text: mysql://user:password@host:port/database, with ?socket=/path for a Unix socket, or
// ?ssl-mode=VERIFY_IDENTITY&ssl-ca=/path; what is not a letter, a digit or one of -._~ is written
// %2F and the like.
//
//   Called from   any thread.
//   Suspends      never.
//   Errors        Parse: INVALID_ARGUMENT.
//
// Example:
//   auto pool = bobbin::db::MySqlPool::Open(
//       {.server = {.host = "db", .user = "app", .database = "main"}});

#ifndef BOBBIN_DB_MYSQL_SERVER_H_
#define BOBBIN_DB_MYSQL_SERVER_H_

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace bobbin::db {

// As MySQL's own programs have it, but for a mode that goes on without.
enum class MySqlTls : uint8_t {
  kDisabled,
  kRequired,        // Encrypted, for whoever answers.
  kVerifyCa,        // The server's certificate is signed by one of `ca_file`...
  kVerifyIdentity,  // ...and is for `host`.
};

struct MySqlServer {
  // A name or an address.
  std::string host = "localhost";
  uint16_t port = 3306;
  // The path of a Unix socket, instead of the two.
  std::string socket = {};
  std::string user = {};
  std::string password = {};
  std::string database = {};
  MySqlTls tls = MySqlTls::kDisabled;
  // Certificates in PEM: who is believed. REQUIRED to verify, and of no use otherwise.
  std::string ca_file = {};
  // For a new connection, from the first name that is looked up to the server's readiness.
  std::chrono::nanoseconds connect_wait_max = std::chrono::seconds(10);
  // How long a server that was asked to end a statement may take before its connection is given up.
  std::chrono::nanoseconds cancel_wait_max = std::chrono::seconds(1);
  // How long a commit, a rollback and the reset of a session may take: a caller that is to stop
  // waits for them all the same.
  std::chrono::nanoseconds finish_wait_max = std::chrono::seconds(30);
  // Prepared statements that each connection keeps, at least one. A server has a limit for all of
  // them together, max_prepared_stmt_count.
  size_t statements_kept_max = 256;

  // What such a text says.
  static absl::StatusOr<MySqlServer> Parse(std::string_view url);
};

}  // namespace bobbin::db

#endif  // BOBBIN_DB_MYSQL_SERVER_H_
