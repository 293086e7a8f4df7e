// SPDX-License-Identifier: Apache-2.0

#include "db/src/mysql_link.h"

#include <chrono>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/cancel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/io/address.h>
#include <bobbin/io/readiness.h>
#include <bobbin/io/resolver.h>
#include <bobbin/sched/run_blocking.h>

#include "db/src/limits.h"
#include "db/src/mysql_error.h"

namespace bobbin::db::internal {

namespace {

constexpr char kConnect[] = "connect mysql";

absl::StatusOr<std::vector<MySqlPlace>> PlacesOf(const MySqlServer& server) {
  if (!server.socket.empty()) return std::vector<MySqlPlace>{{.socket = server.socket}};
  BOBBIN_ASSIGN_OR_RETURN(const auto addresses, io::Resolver::Default().Resolve(server.host));
  std::vector<MySqlPlace> places;
  for (const io::SocketAddress& address : addresses) {
    places.push_back({.address = address.HostToString(), .port = server.port});
  }
  return places;
}

absl::StatusOr<MySqlHandle> MakeHandle() {
  // Two threads must not do this at the same time, and mysql_init would.
  static const bool is_ready = mysql_library_init(0, nullptr, nullptr) == 0;
  MySqlHandle handle(is_ready ? mysql_init(nullptr) : nullptr);
  const size_t stack_bytes = kMySqlStackBytes;
  const my_bool no = 0;
  const unsigned no_files = 0;
  if (handle == nullptr || mysql_options(handle.get(), MYSQL_OPT_NONBLOCK, &stack_bytes) != 0 ||
      mysql_options(handle.get(), MYSQL_SET_CHARSET_NAME, "utf8mb4") != 0 ||
      mysql_options(handle.get(), MYSQL_REPORT_DATA_TRUNCATION, &no) != 0 ||
      mysql_options(handle.get(), MYSQL_OPT_LOCAL_INFILE, &no_files) != 0 ||
      // Later versions want it unless told otherwise, and wait for it in calls that block.
      mysql_options(handle.get(), MYSQL_OPT_SSL_ENFORCE, &no) != 0 ||
      mysql_options(handle.get(), MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &no) != 0) {
    return MakeStatus(absl::StatusCode::kResourceExhausted, "connect mysql: out of memory");
  }
  return handle;
}

const char* OrNull(const std::string& text) { return text.empty() ? nullptr : text.c_str(); }

int BeginConnect(MYSQL*& connected, MYSQL& handle, const MySqlServer& server,
                 const MySqlPlace& place) {
  // An update counts the rows that it finds, as other databases do; a script is many statements.
  constexpr unsigned long kFlags = CLIENT_FOUND_ROWS | CLIENT_MULTI_STATEMENTS;
  return mysql_real_connect_start(&connected, &handle, OrNull(place.address), server.user.c_str(),
                                  server.password.c_str(), OrNull(server.database), place.port,
                                  OrNull(place.socket), kFlags);
}

}  // namespace

absl::StatusOr<int> AwaitMySql(MYSQL& handle, int wants) {
  const my_socket fd = mysql_get_socket(&handle);
  // It waits for one of the two at a time.
  const auto wait = [&] {
    return (wants & MYSQL_WAIT_WRITE) != 0 ? io::WaitWritable(fd) : io::WaitReadable(fd);
  };
  const int events = wants & ~MYSQL_WAIT_TIMEOUT;
  if (events == wants) {
    BOBBIN_RETURN_IF_ERROR(wait());
    return events;
  }
  absl::Status waited;
  {
    const DeadlineScope patience(std::chrono::milliseconds(mysql_get_timeout_value_ms(&handle)));
    waited = wait();
  }
  if (waited.ok()) return events;
  // Whose time was over: libmariadb's, if the caller need not stop.
  BOBBIN_RETURN_IF_ERROR(CheckStop());
  if (waited.code() == absl::StatusCode::kDeadlineExceeded) return MYSQL_WAIT_TIMEOUT;
  return waited;
}

absl::StatusOr<MySqlLink> ConnectMySql(const MySqlServer& server, const MySqlPlace& place) {
  BOBBIN_ASSIGN_OR_RETURN(MySqlHandle handle, RunBlocking(MakeHandle));
  MYSQL* connected = nullptr;
  // Why a half could not be run: the call is then given up, as when a wait fails.
  absl::Status failed;
  const auto run = [&](int otherwise, auto&& half) {
    const absl::StatusOr<int> wants = RunBlocking([&]() -> absl::StatusOr<int> { return half(); });
    failed.Update(wants.status());
    return wants.value_or(otherwise);
  };
  const absl::Status driven = DriveMySql(
      *handle,
      [&](int wants) -> absl::StatusOr<int> {
        if (!failed.ok()) return failed;
        return AwaitMySql(*handle, wants);
      },
      [&] { return run(0, [&] { return BeginConnect(connected, *handle, server, place); }); },
      [&](int got) {
        const auto half = [&] { return mysql_real_connect_cont(&connected, handle.get(), got); };
        return got == MYSQL_WAIT_TIMEOUT ? half() : run(MYSQL_WAIT_READ, half);
      });
  failed.Update(driven);
  if (!failed.ok()) return failed;
  if (connected == nullptr) return MySqlStatus(ErrorOf(*handle), kConnect);
  return MySqlLink{std::move(handle), place};
}

absl::StatusOr<MySqlLink> ConnectMySql(const MySqlServer& server) {
  BOBBIN_ASSIGN_OR_RETURN(const std::vector<MySqlPlace> places, PlacesOf(server));
  absl::StatusOr<MySqlLink> link;
  for (const MySqlPlace& place : places) {
    link = ConnectMySql(server, place);
    // Who was refused by one address is not asked for a password by the next one.
    if (link.ok() || link.status().code() != absl::StatusCode::kUnavailable) return link;
    BOBBIN_RETURN_IF_ERROR(CheckStop());
  }
  return link;
}

}  // namespace bobbin::db::internal
