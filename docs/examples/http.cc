// SPDX-License-Identifier: Apache-2.0
//
// HTTP: a server with a few routes, a client that asks it, and a drain.

// [routes]
#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "fmt/format.h"

#include <bobbin/core/deadline.h>
#include <bobbin/core/guarded.h>
#include <bobbin/core/status.h>
#include <bobbin/io/http/client.h>
#include <bobbin/io/http/server.h>
#include <bobbin/io/io.h>
#include <bobbin/sched/runtime.h>

using namespace std::chrono_literals;
namespace http = bobbin::io::http;

using Notes = bobbin::Guarded<std::map<std::string, std::string>>;

http::Router NotesRouter(Notes& notes) {
  http::Router router;
  router.Handle("GET /notes/", [&](http::Request& request) -> absl::StatusOr<http::Response> {
    const auto held = notes.Lock();
    const auto note = held->find(std::string(request.path()));
    if (note == held->end()) return absl::NotFoundError("no such note");  // 404
    return http::Response{.fields = {{"Content-Type", "text/plain"}}, .body = note->second};
  });
  router.Handle("PUT /notes/", [&](http::Request& request) -> absl::StatusOr<http::Response> {
    BOBBIN_ASSIGN_OR_RETURN(std::string text, request.ReadAll());
    notes.Lock()->insert_or_assign(std::string(request.path()), std::move(text));
    return http::Response{.status = 204};
  });
  router.Handle("GET /count", [](http::Request&) {
    // A body that is made while it is sent.
    return http::Response{.stream = [](http::BodyWriter& body) -> absl::Status {
      for (int i = 1; i <= 100; ++i) BOBBIN_RETURN_IF_ERROR(body.Write(fmt::format("{}\n", i)));
      return absl::OkStatus();
    }};
  });
  return router;
}
// [/routes]

namespace {

// [client]
absl::StatusOr<std::string> Remember(http::Client& client, const std::string& url,
                                     std::string_view text) {
  bobbin::DeadlineScope scope(2s);  // For all of it.
  BOBBIN_ASSIGN_OR_RETURN(auto put,
                          client.Send({.method = "PUT", .url = url, .body = std::string(text)}));
  if (put.status() != 204) return absl::InternalError("it was not taken");

  BOBBIN_ASSIGN_OR_RETURN(auto response, client.Get(url));  // On the same connection.
  return response.ReadAll();
}
// [/client]

absl::Status Main() {
  // [server]
  Notes notes;
  BOBBIN_ASSIGN_OR_RETURN(auto listener, bobbin::io::TcpListener::Bind("127.0.0.1:0"));
  http::Server server({.name = "notes", .body_bytes_max = 4096}, std::move(listener),
                      NotesRouter(notes));
  // [/server]
  const std::string base = fmt::format("http://{}", server.local_address().ToString());
  http::Client client;
  BOBBIN_ASSIGN_OR_RETURN(const std::string note,
                          Remember(client, base + "/notes/today", "feed the cat"));
  BOBBIN_ASSIGN_OR_RETURN(auto count, client.Get(base + "/count"));
  BOBBIN_ASSIGN_OR_RETURN(const std::string numbers, count.ReadAll());
  BOBBIN_ASSIGN_OR_RETURN(auto missing, client.Get(base + "/notes/tomorrow"));
  fmt::print("{}; {} bytes of numbers; {}\n", note, numbers.size(), missing.status());
  if (note != "feed the cat" || numbers.size() != 292 || missing.status() != 404) {
    return absl::InternalError("the answers are others");
  }

  // [drain]
  const bobbin::io::DrainResult end = server.Drain({.grace = 10s});
  for (const std::string& who : end.stragglers) fmt::print("did not end: {}\n", who);
  // [/drain]
  return end.stragglers.empty() ? absl::OkStatus() : absl::InternalError("somebody is left");
}

}  // namespace

int main() { return bobbin::Run(Main, {.poller = bobbin::io::AutoPoller()}); }
