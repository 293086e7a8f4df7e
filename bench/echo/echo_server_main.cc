// SPDX-License-Identifier: Apache-2.0
//
// bobbin_echo_server: one echo server, six ways to wait.
//
// Prints "listening ADDRESS:PORT" when it is ready and one JSON object when it ends, at SIGTERM, at
// SIGINT or after --seconds. Exit codes: 0 served, 1 an error while serving, 2 wrong options.

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>

#include <bobbin/io/io.h>

#include "bench/baseline/raw_epoll_server.h"
#include "bench/baseline/raw_multishot_server.h"
#include "bench/baseline/raw_uring_server.h"
#include "bench/echo/bobbin_server.h"
#include "bench/echo/process_setup.h"
#include "bench/echo/server_options.h"
#include "bench/echo/socket_address.h"
#include "bench/support/command_line.h"

namespace bobbin::bench {
namespace {

constexpr size_t kBufferBytesMax = size_t{1} << 24;

struct Backend {
  std::string_view name;
  bool is_raw;
  int (*run)(const ServerOptions& options);
};

constexpr std::array kBackends = {
    Backend{"bobbin", false,
            [](const ServerOptions& options) {
              return RunBobbinServer(options, EchoBuffers::kOwn, io::UringPoller());
            }},
    Backend{"bobbin-pooled", false,
            [](const ServerOptions& options) {
              return RunBobbinServer(options, EchoBuffers::kPooled, io::UringPoller());
            }},
    Backend{"bobbin-epoll", false,
            [](const ServerOptions& options) {
              return RunBobbinServer(options, EchoBuffers::kOwn, io::EpollPoller());
            }},
    Backend{"raw-uring", true, RunRawUringServer},
    Backend{"raw-multishot", true, RunRawMultishotServer},
    Backend{"raw-epoll", true, RunRawEpollServer},
};

const Backend* FindBackend(std::string_view name) {
  const auto found = std::find_if(kBackends.begin(), kBackends.end(),
                                  [&](const Backend& backend) { return backend.name == name; });
  return found == kBackends.end() ? nullptr : &*found;
}

std::string BackendNames() {
  std::string names;
  for (const Backend& backend : kBackends) {
    if (!names.empty()) names += &backend == &kBackends.back() ? " or " : ", ";
    names += backend.name;
  }
  return names;
}

// Returns what is wrong, in one line; empty if nothing is.
std::string CheckServerOptions(const std::string& backend, const ServerOptions& options) {
  const Backend* const found = FindBackend(backend);
  if (found == nullptr) return "backend " + backend + ": must be " + BackendNames();
  if (!SocketAddress::Parse(options.host, options.port)) {
    return "host " + options.host + ": not a numeric address";
  }
  if (std::string why = CheckCpu(options.cpu); !why.empty()) return why;
  if (options.carriers < 1) return "carriers: must be at least 1";
  if (found->is_raw && options.carriers != 1)
    return "carriers: " + backend + " has one thread only";
  if (options.buffer_bytes < 1 || options.buffer_bytes > kBufferBytesMax) {
    return "buffer-bytes: must be from 1 to " + std::to_string(kBufferBytesMax);
  }
  if (!(options.seconds >= 0 && options.seconds <= 86400))
    return "seconds: must be from 0 to 86400";
  return "";
}

int Main(int argc, char** argv) {
  ServerOptions options;
  std::string backend = "bobbin";
  CLI::App app("An echo server over TCP, to be measured.", "bobbin_echo_server");
  app.add_option("--backend", backend, BackendNames())->capture_default_str();
  app.add_option("--host", options.host, "numeric address to listen on")->capture_default_str();
  app.add_option("--port", options.port, "port, 0 for a free one")->capture_default_str();
  app.add_option("--carriers", options.carriers, "OS threads that serve")->capture_default_str();
  app.add_option("--buffer-bytes", options.buffer_bytes, "the most one receive takes")
      ->capture_default_str();
  app.add_option("--stack-bytes", options.stack_bytes, "stack of each virtual thread")
      ->capture_default_str();
  app.add_option("--seconds", options.seconds, "how long to serve, 0 until SIGTERM")
      ->capture_default_str();
  app.add_option("--cpu", options.cpu, "CPU to run on, -1 for any")->capture_default_str();
  if (const std::optional<int> code = ExitAfterParsing(app, argc, argv)) return *code;
  if (const std::string why = CheckServerOptions(backend, options); !why.empty()) {
    return Refuse(app, why);
  }

  return FindBackend(backend)->run(options);
}

}  // namespace
}  // namespace bobbin::bench

int main(int argc, char** argv) { return bobbin::bench::Main(argc, argv); }
