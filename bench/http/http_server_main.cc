// SPDX-License-Identifier: Apache-2.0
//
// bobbin_http_server: answers every request with a short text, until it is killed.

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>

#include <CLI/CLI.hpp>

#include <bobbin/core/status.h>
#include <bobbin/io/host_port.h>
#include <bobbin/io/http/server.h>
#include <bobbin/io/io.h>
#include <bobbin/sched/runtime.h>

#include "bench/echo/process_setup.h"

namespace bobbin::bench {
namespace {

absl::Status Serve(const std::string& address) {
  BOBBIN_ASSIGN_OR_RETURN(auto listener, io::TcpListener::Bind(address));
  io::http::Router router;
  router.Handle("GET /", [](io::http::Request&) {
    return io::http::Response{.fields = {{"Content-Type", "text/plain"}}, .body = "Hello, World!"};
  });
  io::http::Server server({.connections_max = 100'000}, std::move(listener), std::move(router));
  std::printf("listening %s\n", server.local_address().ToString().c_str());
  std::fflush(stdout);
  return server.Wait();
}

}  // namespace
}  // namespace bobbin::bench

int main(int argc, char** argv) {
  std::string host = "127.0.0.1";
  uint16_t port = 0;
  int cpu = -1;
  int carriers = 1;
  size_t stack_bytes = size_t{256} << 10;
  CLI::App app("Answers every request with a short text.", "bobbin_http_server");
  app.add_option("--host", host, "address to listen at");
  app.add_option("--port", port, "0: a free one");
  app.add_option("--cpu", cpu, "CPU to run on, -1 for any");
  app.add_option("--carriers", carriers, "OS threads");
  app.add_option("--stack-bytes", stack_bytes, "stack of each virtual thread");
  CLI11_PARSE(app, argc, argv);
  if (const std::string error = bobbin::bench::PinToCpu(cpu); !error.empty()) {
    std::fprintf(stderr, "bobbin_http_server: %s\n", error.c_str());
    return 1;
  }
  bobbin::bench::RaiseFileLimit();
  const std::string address = bobbin::io::HostPort{.host = host, .port = port}.ToString();
  return bobbin::Run(
      [&] { return bobbin::bench::Serve(address); },
      {.carriers = carriers, .poller = bobbin::io::AutoPoller(), .stack_bytes = stack_bytes});
}
