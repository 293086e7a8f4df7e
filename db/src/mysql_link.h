// SPDX-License-Identifier: Apache-2.0
//
// MySqlLink: a connection of libmariadb's, and how its calls wait here.
//
// Each call that may wait has two halves: `_start` begins it, and `_cont` goes on with it when what
// it has asked for has come. Between them libmariadb keeps the call's stack, which it leaves by
// itself: a stack of its own, on which nothing of bobbin's runs and nothing waits, so that the next
// half may run on another carrier.
//
// A call that was begun must be gone through. One that is given up is: its socket is shut, and
// whatever it asks for, it is told that its time is over, until it comes out with an error.
//
//   Called from   virtual, platform and foreign threads; one at a time.
//   Suspends      ConnectMySql, DriveMySql and AwaitMySql, while libmariadb waits for its socket.
//   Cancellation  CANCELLED or DEADLINE_EXCEEDED; the link is then of no use any more. That of a
//                 connect leaves nothing behind.
//   Errors        ConnectMySql: UNAVAILABLE: nobody answers, or not in time. Of names that are not
//                 known: as io::Resolver. Others: what the server said; see mysql_error.h.
//   Cost          A connect: a round trip to a platform thread for each of the server's answers,
//                 because libmariadb may have to load a library to read it, and makes a handshake
//                 of TLS in one call, which blocks. One that is given up then is ended by shutting
//                 its socket; on a thread that may block itself it ends with the server's
//                 connect_wait_max, in whole seconds.

#ifndef BOBBIN_DB_SRC_MYSQL_LINK_H_
#define BOBBIN_DB_SRC_MYSQL_LINK_H_

#include <mysql.h>
#include <sys/socket.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "openssl/err.h"

#include <bobbin/db/mysql_server.h>

namespace bobbin::db::internal {

struct CloseMySql {
  void operator()(MYSQL* handle) const { mysql_close(handle); }
};
using MySqlHandle = std::unique_ptr<MYSQL, CloseMySql>;

// Where a server is.
struct MySqlPlace {
  // Without names, unless the certificate is to be for one: libmariadb then looks it up itself.
  std::string address = {};
  uint16_t port = 0;
  std::string socket = {};  // Instead of the two.
};

struct MySqlLink {
  MySqlHandle handle;
  MySqlPlace place;  // Where it leads.
};

// A new connection; to `server`, or to one of its places. INVALID_ARGUMENT of the server: there is
// nothing to verify a certificate with.
absl::StatusOr<MySqlLink> ConnectMySql(const MySqlServer& server);
absl::StatusOr<MySqlLink> ConnectMySql(const MySqlServer& server, const MySqlPlace& place);

// Waits for what libmariadb wants of its socket, a sum of MYSQL_WAIT_*. Returns what has come.
absl::StatusOr<int> AwaitMySql(MYSQL& handle, int wants);

// Lets nothing through any more, so that nothing waits for it.
inline void ShutMySql(MYSQL& handle) {
  if (const my_socket fd = mysql_get_socket(&handle); fd != MARIADB_INVALID_SOCKET) {
    ::shutdown(fd, SHUT_RDWR);
  }
}

// Before a half. OpenSSL would take an error of another connection, which was left on this OS
// thread, for one of this connection, and libmariadb does not clear them away.
inline void ForgetTlsErrors() { ERR_clear_error(); }

// Makes a call: `begin` and `go_on` are its halves and return what it waits for, 0 at its end;
// `await` waits for it. An error: `await` failed, and the link is shut.
template <typename Await, typename Begin, typename GoOn>
absl::Status DriveMySql(MYSQL& handle, const Await& await, const Begin& begin, const GoOn& go_on) {
  absl::Status failed;
  ForgetTlsErrors();
  for (int wants = begin(); wants != 0;) {
    if (failed.ok()) {
      const absl::StatusOr<int> got = await(wants);
      ForgetTlsErrors();
      if (got.ok()) {
        wants = go_on(*got);
        continue;
      }
      failed = got.status();
      ShutMySql(handle);
    }
    wants = go_on(MYSQL_WAIT_TIMEOUT);
  }
  return failed;
}

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_MYSQL_LINK_H_
