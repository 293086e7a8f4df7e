// SPDX-License-Identifier: Apache-2.0
//
// TLS: a server of streams, a server of HTTP, and who talks to them. The certificate is made by the
// openssl command.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <span>
#include <string>
#include <utility>

#include "fmt/format.h"

#include <bobbin/core/check.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/io/file_system.h>
#include <bobbin/io/http/client.h>
#include <bobbin/io/http/server.h>
#include <bobbin/io/io.h>
#include <bobbin/io/process.h>
#include <bobbin/io/server.h>
#include <bobbin/io/tls_stream.h>
#include <bobbin/sched/platform_pool.h>
#include <bobbin/sched/runtime.h>

using namespace std::chrono_literals;
namespace http = bobbin::io::http;

// [echo]
absl::Status Echo(const bobbin::io::TlsServerContext& tls, bobbin::io::ServerConnection& peer) {
  bobbin::DeadlineScope scope(30s);  // For the handshake, and all that follows.
  BOBBIN_ASSIGN_OR_RETURN(auto stream, bobbin::io::TlsStream::AcceptOver(tls, peer.stream()));
  std::array<std::byte, 2048> buffer;
  while (true) {
    BOBBIN_ASSIGN_OR_RETURN(size_t received, stream.Read(buffer));
    if (received == 0) return stream.ShutdownWrite();  // The peer has said that it has finished.
    BOBBIN_RETURN_IF_ERROR(stream.WriteAll(std::span(buffer).first(received)));
  }
}
// [/echo]

namespace {

// One that says of itself that it is localhost.
absl::Status MakeCertificate(const std::string& directory) {
  BOBBIN_ASSIGN_OR_RETURN(
      auto openssl,
      bobbin::io::Process::Spawn(
          {.program = "openssl",
           .arguments = {"req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                         "-nodes", "-days", "1", "-subj", "/CN=localhost", "-addext",
                         "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "chain.pem"},
           .directory = directory,
           .error = bobbin::io::StandardStream::kNull}));
  BOBBIN_ASSIGN_OR_RETURN(const bobbin::io::ProcessEnd end, openssl.Wait());
  return end.ok() ? absl::OkStatus() : absl::InternalError("openssl makes no certificate");
}

absl::StatusOr<std::string> Say(const bobbin::io::TlsClientContext& tls, uint16_t port) {
  // [client]
  bobbin::DeadlineScope scope(2s);  // Connecting, shaking hands, and all that follows.
  BOBBIN_ASSIGN_OR_RETURN(auto peer, bobbin::io::TlsStream::Connect(tls, "localhost", port));
  BOBBIN_RETURN_IF_ERROR(peer.WriteAll(std::as_bytes(std::span("hello", 5))));
  BOBBIN_RETURN_IF_ERROR(peer.ShutdownWrite());
  std::string text(5, '\0');
  BOBBIN_RETURN_IF_ERROR(peer.ReadExact(std::as_writable_bytes(std::span(text))));
  // [/client]
  return text;
}

absl::Status Talk(const std::string& directory) {
  BOBBIN_RETURN_IF_ERROR(MakeCertificate(directory));
  // [context]
  BOBBIN_ASSIGN_OR_RETURN(auto certificate, bobbin::io::TlsCertificate::Load(
                                                directory + "/chain.pem", directory + "/key.pem"));
  BOBBIN_ASSIGN_OR_RETURN(auto tls,
                          bobbin::io::TlsServerContext::Make({.certificates = {certificate}}));
  // [/context]
  BOBBIN_ASSIGN_OR_RETURN(auto listener, bobbin::io::TcpListener::Bind("127.0.0.1:0"));
  bobbin::io::Server echo({.name = "echo"}, std::move(listener),
                          [&](bobbin::io::ServerConnection& peer) { return Echo(tls, peer); });

  // It has signed itself, and so it is its own root. Without `roots_pem`: those of the system.
  BOBBIN_ASSIGN_OR_RETURN(auto trust,
                          bobbin::io::TlsClientContext::Make({.roots_pem = certificate.chain_pem}));
  BOBBIN_ASSIGN_OR_RETURN(const std::string text, Say(trust, echo.local_address().port()));
  BOBBIN_CHECK(text == "hello", "an echo says what it has heard");

  // [pool]
  bobbin::PlatformPool pool({.name = "handshakes", .threads = 2});
  BOBBIN_ASSIGN_OR_RETURN(auto calm, bobbin::io::TlsServerContext::Make(
                                         {.certificates = {certificate}, .handshakes = &pool}));
  // [/pool]

  // [https]
  BOBBIN_ASSIGN_OR_RETURN(auto port, bobbin::io::TcpListener::Bind("127.0.0.1:0"));
  http::Server server({.tls = tls}, std::move(port),
                      [](http::Request&) { return http::Response{.body = "secret\n"}; });

  http::Client client({.tls = trust});
  BOBBIN_ASSIGN_OR_RETURN(auto response, client.Get(fmt::format("https://localhost:{}/",
                                                                server.local_address().port())));
  // [/https]
  BOBBIN_ASSIGN_OR_RETURN(const std::string body, response.ReadAll());
  BOBBIN_CHECK(body == "secret\n", "it is what the server has sent");
  BOBBIN_CHECK(static_cast<bool>(calm), "it was made");
  return absl::OkStatus();
}

absl::Status Main() {
  std::string directory = (std::filesystem::temp_directory_path() / "bobbin-tls-XXXXXX").string();
  if (::mkdtemp(directory.data()) == nullptr) return absl::InternalError("no directory");
  absl::Status talked = Talk(directory);
  std::filesystem::remove_all(directory);
  return talked;
}

}  // namespace

int main() { return bobbin::Run(Main, {.poller = bobbin::io::AutoPoller()}); }
