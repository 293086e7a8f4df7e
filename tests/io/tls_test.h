// SPDX-License-Identifier: Apache-2.0
//
// What the tests of TLS share: contexts that believe each other, connections between them, and a
// peer that is OpenSSL's alone.
//
//   Called from   virtual threads of a runtime that does I/O, and foreign threads.
//   Suspends      what makes connections.

#ifndef BOBBIN_TESTS_IO_TLS_TEST_H_
#define BOBBIN_TESTS_IO_TLS_TEST_H_

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "openssl/ssl.h"

#include <bobbin/core/status.h>
#include <bobbin/io/tls_stream.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/io/io_test.h"
#include "tests/services/test_authority.h"

namespace bobbin::test {

inline constexpr absl::StatusCode kUnauthenticated = absl::StatusCode::kUnauthenticated;

// A server that is "localhost" and 127.0.0.1, and what else `options` say.
inline io::TlsServerContext ServerContext(io::TlsServerOptions options = {}) {
  if (options.certificates.empty()) {
    static const io::TlsCertificate certificate = TestAuthority::Default().Issue();
    options.certificates.push_back(certificate);
  }
  auto context = io::TlsServerContext::Make(options);
  EXPECT_OK(context);
  return *std::move(context);
}

// A client that believes the default authority, unless `options` say whom.
inline io::TlsClientContext ClientContext(io::TlsClientOptions options = {}) {
  if (options.roots_pem.empty()) options.roots_pem = TestAuthority::Default().root_pem();
  auto context = io::TlsClientContext::Make(options);
  EXPECT_OK(context);
  return *std::move(context);
}

// Both ends of a handshake, as they have come out of it.
struct TlsEnds {
  absl::StatusOr<io::TlsStream> client = absl::UnknownError("not begun");
  absl::StatusOr<io::TlsStream> server = absl::UnknownError("not begun");
};

inline TlsEnds ShakeHands(const io::TlsClientContext& client, const io::TlsServerContext& server,
                          Pair pair, const std::string& host = "localhost") {
  TlsEnds ends;
  TaskGroup group({.placement = Placement::kSpread});
  group.Spawn([&, stream = std::move(pair.right)]() mutable {
    ends.server = io::TlsStream::Accept(server, std::move(stream));
  });
  ends.client = io::TlsStream::Connect(client, host, std::move(pair.left));
  EXPECT_OK(group.Wait());
  return ends;
}

struct TlsPair {
  io::TlsStream left;  // The client.
  io::TlsStream right;
};

inline TlsPair MakeTlsPair(const io::TlsClientContext& client, const io::TlsServerContext& server,
                           Pair pair) {
  TlsEnds ends = ShakeHands(client, server, std::move(pair));
  EXPECT_OK(ends.client);
  EXPECT_OK(ends.server);
  return {*std::move(ends.client), *std::move(ends.server)};
}

inline TlsPair MakeTlsPair() { return MakeTlsPair(ClientContext(), ServerContext(), MakePair()); }

// The other side, by OpenSSL alone: its own memory BIOs, carried over `stream`.
class RawTlsPeer {
 public:
  enum class Side { kClient, kServer };

  // Knows no certificates but, as a server, that of "localhost"; believes everybody. `prepare` may
  // change the context before it is used.
  RawTlsPeer(io::TcpStream& stream, Side side, void (*prepare)(SSL_CTX*) = nullptr);
  RawTlsPeer(const RawTlsPeer&) = delete;
  RawTlsPeer& operator=(const RawTlsPeer&) = delete;
  ~RawTlsPeer();

  absl::Status Handshake();
  absl::Status Write(std::string_view text);
  // What comes next, `bytes` of it.
  absl::StatusOr<std::string> Read(size_t bytes);
  // New keys for what it sends, and, if asked for, for what it gets.
  absl::Status UpdateKeys(int kind);
  absl::Status SayGoodbye();
  SSL* ssl() { return ssl_; }
  // Sends what OpenSSL has written so far.
  absl::Status Flush();

 private:
  absl::Status Feed();

  io::TcpStream& stream_;
  SSL_CTX* context_;
  SSL* ssl_;
};

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_IO_TLS_TEST_H_
