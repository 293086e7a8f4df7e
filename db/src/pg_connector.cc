// SPDX-License-Identifier: Apache-2.0

#include "db/src/pg_connector.h"

#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <bobbin/core/cancel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/io/address.h>
#include <bobbin/io/readiness.h>
#include <bobbin/io/resolver.h>
#include <bobbin/sched/run_blocking.h>

#include "db/src/pg_error.h"

namespace bobbin::db::internal {

namespace {

// A place where a server may be, as libpq's parameters of these names.
struct Place {
  std::string host;
  std::string hostaddr;
  std::string port;
};

// What libpq is told.
struct Plan {
  std::vector<Place> places;
  std::vector<std::pair<std::string, std::string>> others;
};

struct FreeOptions {
  void operator()(PQconninfoOption* options) const { PQconninfoFree(options); }
};
using Options = std::unique_ptr<PQconninfoOption, FreeOptions>;

std::string ValueOf(const Options& options, std::string_view keyword) {
  for (const PQconninfoOption* each = options.get(); each->keyword != nullptr; ++each) {
    if (each->keyword == keyword) return each->val == nullptr ? "" : each->val;
  }
  return {};
}

std::vector<std::string> Split(std::string_view list) {
  std::vector<std::string> parts;
  while (true) {
    const size_t comma = list.find(',');
    parts.emplace_back(list.substr(0, comma));
    if (comma == list.npos) return parts;
    list.remove_prefix(comma + 1);
  }
}

std::string Without(std::string text, char last) {
  while (text.ends_with(last)) text.pop_back();
  return text;
}

// May read files.
absl::StatusOr<Plan> MakePlan(const std::string& conninfo) {
  char* error = nullptr;
  const Options given(PQconninfoParse(conninfo.c_str(), &error));
  if (given == nullptr) {
    const std::string text = error == nullptr ? "out of memory" : Without(error, '\n');
    PQfreemem(error);
    return MakeStatus(absl::StatusCode::kInvalidArgument, "connect postgres: " + text);
  }
  Plan plan;
  for (const PQconninfoOption* each = given.get(); each->keyword != nullptr; ++each) {
    const std::string_view keyword(each->keyword);
    if (each->val == nullptr || keyword == "host" || keyword == "hostaddr" || keyword == "port") {
      continue;
    }
    plan.others.emplace_back(keyword, each->val);
  }
  // Texts are UTF-8 here, whatever the database keeps.
  plan.others.emplace_back("client_encoding", "UTF8");

  const Options defaults(PQconndefaults());
  const auto value = [&](std::string_view keyword) {
    std::string text = ValueOf(given, keyword);
    return text.empty() && defaults != nullptr ? ValueOf(defaults, keyword) : text;
  };
  const std::vector<std::string> hosts = Split(value("host"));
  const std::vector<std::string> addresses = Split(value("hostaddr"));
  const std::vector<std::string> ports = Split(value("port"));
  const size_t count = std::max(hosts.size(), addresses.size());
  const auto has_all = [count](const std::vector<std::string>& list) {
    return list.size() == count || list.size() == 1;
  };
  if (!has_all(hosts) || !has_all(addresses) || !has_all(ports)) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      "connect postgres: the lists of hosts and ports differ in length");
  }
  const auto at = [](const std::vector<std::string>& list, size_t i) {
    return list.size() == 1 ? list.front() : list[i];
  };
  for (size_t i = 0; i < count; ++i) {
    plan.places.push_back({at(hosts, i), at(addresses, i), at(ports, i)});
  }
  return plan;
}

bool IsSocketFolder(std::string_view host) {
  return host.empty() || host.starts_with('/') || host.starts_with('@');
}

// Puts a place for each address of a name in the place of the name.
absl::Status ResolvePlaces(Plan& plan) {
  std::vector<Place> resolved;
  absl::Status last;
  for (Place& place : plan.places) {
    if (!place.hostaddr.empty() || IsSocketFolder(place.host)) {
      resolved.push_back(std::move(place));
      continue;
    }
    const auto addresses = io::Resolver::Default().Resolve(place.host);
    BOBBIN_RETURN_IF_ERROR(CheckStop());
    if (!addresses.ok()) {
      last = addresses.status();  // Another name may be known.
      continue;
    }
    for (const io::SocketAddress& address : *addresses) {
      resolved.push_back({place.host, address.HostToString(), place.port});
    }
  }
  if (resolved.empty()) return last;
  plan.places = std::move(resolved);
  return absl::OkStatus();
}

std::string Join(const std::vector<Place>& places, std::string Place::*field) {
  std::string list;
  for (const Place& place : places) {
    if (&place != &places.front()) list += ',';
    list += place.*field;
  }
  return list;
}

// What libpq and the server say to each other, as libpq writes it down: it keeps to itself the key
// that a request to end a statement is signed with, and the code of the error that ended a
// connection.
class Record {
 public:
  Record() : file_(open_memstream(&text_, &size_)) {}
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;
  ~Record() {
    if (file_ != nullptr) fclose(file_);
    std::free(text_);
  }

  void Begin(PGconn& connection) {
    if (file_ == nullptr) return;
    PQtrace(&connection, file_);
    PQsetTraceFlags(&connection, PQTRACE_SUPPRESS_TIMESTAMPS);
  }
  void End(PGconn& connection) {
    PQuntrace(&connection);
    if (file_ != nullptr) fflush(file_);
  }

  // The second number of the last "BackendKeyData <process> <key>".
  std::optional<int32_t> CancelKey() const {
    std::string_view numbers = BehindLast("BackendKeyData\t");
    numbers = numbers.substr(0, numbers.find('\n'));
    const size_t space = numbers.rfind(' ');
    if (space == numbers.npos) return std::nullopt;
    numbers.remove_prefix(space + 1);
    int32_t key = 0;
    const auto [end, error] = std::from_chars(numbers.begin(), numbers.end(), key);
    if (error != std::errc() || end != numbers.end()) return std::nullopt;
    return key;
  }
  // The field `C "<five characters>"` of the last error.
  std::string SqlState() const {
    std::string_view fields = BehindLast("ErrorResponse\t");
    fields = fields.substr(0, fields.find('\n'));
    const size_t code = fields.find(" C \"");
    return code == fields.npos ? std::string() : std::string(fields.substr(code + 4, 5));
  }

 private:
  std::string_view BehindLast(std::string_view word) const {
    const std::string_view text = text_ == nullptr ? "" : std::string_view(text_, size_);
    const size_t at = text.rfind(word);
    return at == text.npos ? std::string_view() : text.substr(at + word.size());
  }

  char* text_ = nullptr;
  size_t size_ = 0;
  FILE* const file_;
};

absl::StatusOr<PgHandle> Start(const Plan& plan, Record& record) {
  const std::string host = Join(plan.places, &Place::host);
  const std::string hostaddr = Join(plan.places, &Place::hostaddr);
  const std::string port = Join(plan.places, &Place::port);
  std::vector<const char*> keywords = {"host", "hostaddr", "port"};
  std::vector<const char*> values = {host.c_str(), hostaddr.c_str(), port.c_str()};
  for (const auto& [keyword, value] : plan.others) {
    keywords.push_back(keyword.c_str());
    values.push_back(value.c_str());
  }
  keywords.push_back(nullptr);
  values.push_back(nullptr);
  PgHandle handle(PQconnectStartParams(keywords.data(), values.data(), 0));
  if (handle == nullptr) {
    return MakeStatus(absl::StatusCode::kResourceExhausted, "connect postgres: out of memory");
  }
  record.Begin(*handle);
  return handle;
}

absl::Status Refused(PGconn& connection, const Record& record) {
  std::string sqlstate = record.SqlState();
  // The errors before a password was accepted are not in the record.
  if (sqlstate.empty() &&
      (PQconnectionUsedPassword(&connection) != 0 || PQconnectionNeedsPassword(&connection) != 0)) {
    sqlstate = kInvalidPassword;
  }
  return PgStatus(
      {.sqlstate = std::move(sqlstate), .message = Without(PQerrorMessage(&connection), '\n')},
      "connect postgres");
}

absl::StatusOr<PgLink> Connect(const PgServer& server) {
  BOBBIN_ASSIGN_OR_RETURN(Plan plan, RunBlocking([&] { return MakePlan(server.conninfo); }));
  BOBBIN_RETURN_IF_ERROR(ResolvePlaces(plan));

  Record record;
  BOBBIN_ASSIGN_OR_RETURN(PgHandle handle, RunBlocking([&] { return Start(plan, record); }));
  PostgresPollingStatusType next =
      PQstatus(handle.get()) == CONNECTION_BAD ? PGRES_POLLING_FAILED : PGRES_POLLING_WRITING;
  while (next == PGRES_POLLING_READING || next == PGRES_POLLING_WRITING) {
    const int fd = PQsocket(handle.get());
    BOBBIN_RETURN_IF_ERROR(next == PGRES_POLLING_READING ? io::WaitReadable(fd)
                                                         : io::WaitWritable(fd));
    BOBBIN_ASSIGN_OR_RETURN(next, RunBlocking([&] { return PQconnectPoll(handle.get()); }));
  }
  record.End(*handle);
  if (next != PGRES_POLLING_OK) return Refused(*handle, record);
  if (PQsetnonblocking(handle.get(), 1) != 0) return Refused(*handle, record);
  return PgLink{std::move(handle), record.CancelKey()};
}

}  // namespace

absl::StatusOr<PgLink> ConnectPg(const PgServer& server) {
  absl::StatusOr<PgLink> link = [&] {
    const DeadlineScope patience(server.connect_wait_max);
    return Connect(server);
  }();
  // The patience is the pool's, not the caller's.
  if (link.status().code() == absl::StatusCode::kDeadlineExceeded && CheckStop().ok()) {
    return MakeStatus(
        absl::StatusCode::kUnavailable,
        fmt::format("connect postgres: no answer within {} ms",
                    std::chrono::ceil<std::chrono::milliseconds>(server.connect_wait_max).count()));
  }
  return link;
}

}  // namespace bobbin::db::internal
