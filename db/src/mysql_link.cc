// SPDX-License-Identifier: Apache-2.0

#include "db/src/mysql_link.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/functional/function_ref.h"
#include <fmt/format.h>

#include <bobbin/core/cancel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/role.h>
#include <bobbin/core/status.h>
#include <bobbin/io/address.h>
#include <bobbin/io/readiness.h>
#include <bobbin/io/resolver.h>
#include <bobbin/sched/run_blocking.h>
#include <bobbin/sched/spawn.h>

#include "db/src/limits.h"
#include "db/src/mysql_error.h"

namespace bobbin::db::internal {

namespace {

constexpr char kConnect[] = "connect mysql";

bool Verifies(const MySqlServer& server) { return server.tls >= MySqlTls::kVerifyCa; }

absl::Status CheckTls(const MySqlServer& server) {
  std::string_view cause;
  if (Verifies(server) && server.ca_file.empty()) {
    cause = "a certificate is to be verified, and no ca_file says whom to believe";
  } else if (server.tls == MySqlTls::kVerifyIdentity && !server.socket.empty()) {
    cause = "a certificate is for a host's name, and a Unix socket has none";
  } else {
    return absl::OkStatus();
  }
  return MakeStatus(absl::StatusCode::kInvalidArgument, fmt::format("{}: {}", kConnect, cause));
}

absl::StatusOr<std::vector<MySqlPlace>> PlacesOf(const MySqlServer& server) {
  if (!server.socket.empty()) return std::vector<MySqlPlace>{{.socket = server.socket}};
  // Also where libmariadb does it once more: it would block a thread for a name that nobody knows.
  BOBBIN_ASSIGN_OR_RETURN(const auto addresses, io::Resolver::Default().Resolve(server.host));
  if (server.tls == MySqlTls::kVerifyIdentity) {
    return std::vector<MySqlPlace>{{.address = server.host, .port = server.port}};
  }
  std::vector<MySqlPlace> places;
  for (const io::SocketAddress& address : addresses) {
    places.push_back({.address = address.HostToString(), .port = server.port});
  }
  return places;
}

bool SetTls(MYSQL& handle, const MySqlServer& server) {
  // Later versions want it unless told otherwise.
  const my_bool is_on = server.tls != MySqlTls::kDisabled;
  const my_bool verifies_name = server.tls == MySqlTls::kVerifyIdentity;
  // The patience of its handshake, which it counts in seconds.
  const auto patience = static_cast<unsigned>(
      std::chrono::ceil<std::chrono::seconds>(server.connect_wait_max).count());
  return mysql_options(&handle, MYSQL_OPT_SSL_ENFORCE, &is_on) == 0 &&
         mysql_options(&handle, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &verifies_name) == 0 &&
         (!Verifies(server) ||
          mysql_options(&handle, MYSQL_OPT_SSL_CA, server.ca_file.c_str()) == 0) &&
         (!is_on || mysql_options(&handle, MYSQL_OPT_CONNECT_TIMEOUT, &patience) == 0);
}

absl::StatusOr<MySqlHandle> MakeHandle(const MySqlServer& server) {
  // Two threads must not do this at the same time, and mysql_init would.
  static const bool is_ready = mysql_library_init(0, nullptr, nullptr) == 0;
  MySqlHandle handle(is_ready ? mysql_init(nullptr) : nullptr);
  const size_t stack_bytes = kMySqlStackBytes;
  const my_bool no = 0;
  const unsigned no_files = 0;
  // Told nothing, it takes the name localhost for a Unix socket.
  const unsigned protocol = server.socket.empty() ? MYSQL_PROTOCOL_TCP : MYSQL_PROTOCOL_SOCKET;
  if (handle == nullptr || mysql_options(handle.get(), MYSQL_OPT_NONBLOCK, &stack_bytes) != 0 ||
      mysql_options(handle.get(), MYSQL_SET_CHARSET_NAME, "utf8mb4") != 0 ||
      mysql_options(handle.get(), MYSQL_REPORT_DATA_TRUNCATION, &no) != 0 ||
      mysql_options(handle.get(), MYSQL_OPT_LOCAL_INFILE, &no_files) != 0 ||
      mysql_options(handle.get(), MYSQL_OPT_PROTOCOL, &protocol) != 0 || !SetTls(*handle, server)) {
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

// Runs a half that may make a handshake, on a platform thread, and ends it when the caller is to
// stop: by its socket, of which it has a descriptor of its own, as libmariadb may close the other
// one at any time. `stopped` is why it was ended.
absl::StatusOr<int> RunHandshake(MYSQL& handle, absl::FunctionRef<absl::StatusOr<int>()> half,
                                 absl::Status& stopped) {
  if (CurrentRole() != Role::kVirtual) return RunBlocking(half);
  // Before it is libmariadb's again; none before it is connected.
  const int socket = ::fcntl(mysql_get_socket(&handle), F_DUPFD_CLOEXEC, 0);
  const absl::Cleanup close = [socket] {
    if (socket >= 0) ::close(socket);
  };
  absl::StatusOr<int> wants = 0;
  BOBBIN_ASSIGN_OR_RETURN(VirtualThread runner, TrySpawn({.name = "mysql handshake"},
                                                         [&] { wants = RunBlocking(half); }));
  stopped = runner.Join();
  if (!stopped.ok()) {
    ::shutdown(socket, SHUT_RDWR);
    const CancelShield shield;
    stopped.Update(runner.Join());
  }
  return wants;
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
  BOBBIN_ASSIGN_OR_RETURN(MySqlHandle handle, RunBlocking([&] { return MakeHandle(server); }));
  MYSQL* connected = nullptr;
  // Why a half could not be run: the call is then given up, as when a wait fails.
  absl::Status failed;
  const auto run = [&](int otherwise, auto&& half) {
    const auto call = [&]() -> absl::StatusOr<int> {
      ForgetTlsErrors();
      return half();
    };
    const absl::StatusOr<int> wants =
        server.tls == MySqlTls::kDisabled ? RunBlocking(call) : RunHandshake(*handle, call, failed);
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
  // The handshake has left it blocking. Without TLS libmariadb says with each call that it must
  // not.
  const my_socket socket = mysql_get_socket(handle.get());
  if (::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK) != 0) {
    return MakeStatus(absl::ErrnoToStatusCode(errno), "connect mysql: no flags of its socket");
  }
  return MySqlLink{std::move(handle), place};
}

absl::StatusOr<MySqlLink> ConnectMySql(const MySqlServer& server) {
  BOBBIN_RETURN_IF_ERROR(CheckTls(server));
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
