// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "openssl/err.h"

#include <bobbin/core/status.h>
#include <bobbin/io/process.h>

#include "tests/io/http_test.h"
#include "tests/io/io_test.h"
#include "tests/io/temporary_directory.h"
#include "tests/io/tls_test.h"

namespace bobbin::test {
namespace {

using testing::HasSubstr;

// What it writes up to `end`, that included; all of it if that does not come.
std::string ReadUntil(io::PipeReader& output, std::string_view end) {
  std::string all;
  std::array<std::byte, 1> next;
  while (!all.ends_with(end)) {
    const auto received = output.Read(next);
    if (!received.ok() || *received == 0) break;
    all += static_cast<char>(next[0]);
  }
  return all;
}

// `openssl s_server` that sends each line back, reversed.
struct OpenSslServer {
  explicit OpenSslServer(std::vector<std::string> more) {
    const io::TlsCertificate certificate =
        TestAuthority::Default().Issue({.has_intermediate = true});
    std::ofstream(directory / "chain.pem") << certificate.chain_pem;
    std::ofstream(directory / "key.pem") << certificate.key_pem;
    std::vector<std::string> arguments = {"s_server",
                                          "-accept",
                                          "127.0.0.1:0",
                                          "-cert",
                                          directory / "chain.pem",
                                          "-cert_chain",
                                          directory / "chain.pem",
                                          "-key",
                                          directory / "key.pem",
                                          "-rev"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    auto started = io::Process::Spawn({.program = "openssl",
                                       .arguments = std::move(arguments),
                                       .output = io::StandardStream::kPipe,
                                       .error = io::StandardStream::kNull});
    EXPECT_OK(started);
    process = *std::move(started);
    const std::string before = ReadUntil(process.output(), "ACCEPT 127.0.0.1:");
    EXPECT_THAT(before, HasSubstr("ACCEPT")) << before;
    port = static_cast<uint16_t>(std::stoi("0" + ReadUntil(process.output(), "\n")));
  }
  ~OpenSslServer() { EXPECT_OK(process.Stop(std::chrono::seconds(5))); }

  io::SocketAddress address() const {
    return io::SocketAddress::Parse("127.0.0.1:" + std::to_string(port)).value();
  }

  TemporaryDirectory directory;
  io::Process process;
  uint16_t port = 0;
};

BOBBIN_IO_TEST(TlsPeersTest, AServerOfOpenSslAnswers) {
  for (const std::string_view version : {"-tls1_2", "-tls1_3"}) {
    OpenSslServer server({std::string(version)});
    const io::TlsClientContext context = ClientContext();
    for (int i = 0; i < 2; ++i) {
      auto stream = io::TlsStream::Connect(context, "localhost", ConnectTo(server.address()));
      ASSERT_OK(stream);
      ASSERT_OK(stream->WriteAll(Bytes("abc\n")));
      EXPECT_EQ(ReadText(*stream, 4), "cba\n");
      EXPECT_EQ(stream->is_resumed(), i > 0);
      EXPECT_OK(stream->ShutdownWrite());
    }
  }
}

BOBBIN_IO_TEST(TlsPeersTest, AClientOfOpenSslIsAnswered) {
  const TemporaryDirectory directory;
  std::ofstream(directory / "roots.pem") << TestAuthority::Default().root_pem();
  const io::TlsServerContext context = ServerContext({.alpn = {"echo"}});
  for (const std::string_view version : {"-tls1_2", "-tls1_3"}) {
    io::TcpListener listener = ListenHere();
    auto client = io::Process::Spawn(
        {.program = "openssl",
         .arguments = {"s_client", "-connect", listener.local_address().ToString(), "-CAfile",
                       directory / "roots.pem", "-verify_return_error", "-servername", "localhost",
                       "-verify_hostname", "localhost", "-alpn", "echo", "-quiet",
                       std::string(version)},
         .input = io::StandardStream::kPipe,
         .output = io::StandardStream::kPipe,
         .error = io::StandardStream::kNull});
    ASSERT_OK(client);
    auto accepted = listener.Accept();
    ASSERT_OK(accepted);
    auto stream = io::TlsStream::Accept(context, *std::move(accepted));
    ASSERT_OK(stream);
    EXPECT_EQ(stream->alpn(), "echo");
    ASSERT_OK(client->input().WriteAll(Bytes("question\n")));
    EXPECT_EQ(ReadText(*stream, 9), "question\n");
    ASSERT_OK(stream->WriteAll(Bytes("answer\n")));
    EXPECT_EQ(ReadUntil(client->output(), "\n"), "answer\n");
    ASSERT_OK(stream->ShutdownWrite());
    EXPECT_OK(client->Wait());
  }
}

// --- A peer that does what clients of ours do not

BOBBIN_IO_TEST(TlsPeersTest, KeysChangeWhileBothSidesTalk) {
  const io::TlsServerContext context = ServerContext();
  Pair pair = MakePair();
  RawTlsPeer peer(pair.left, RawTlsPeer::Side::kClient);
  VirtualThread server = Spawn([&] {
    auto stream = io::TlsStream::Accept(context, std::move(pair.right));
    ASSERT_OK(stream);
    for (int i = 0; i < Rounds(20); ++i) {
      ASSERT_EQ(ReadText(*stream, 4), "ping");
      ASSERT_OK(stream->WriteAll(Bytes("pong")));
    }
  });
  ASSERT_OK(peer.Handshake());
  for (int i = 0; i < Rounds(20); ++i) {
    ASSERT_OK(
        peer.UpdateKeys(i % 2 == 0 ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED));
    ASSERT_OK(peer.Write("ping"));
    EXPECT_THAT(peer.Read(4), IsOkAndHolds(std::string("pong")));
  }
  EXPECT_OK(server.Join());
}

BOBBIN_IO_TEST(TlsPeersTest, ARenegotiationIsRefused) {
  const io::TlsServerContext context = ServerContext();
  Pair pair = MakePair();
  RawTlsPeer peer(pair.left, RawTlsPeer::Side::kClient, [](SSL_CTX* prepared) {
    SSL_CTX_set_max_proto_version(prepared, TLS1_2_VERSION);
  });
  VirtualThread server = Spawn([&] {
    auto stream = io::TlsStream::Accept(context, std::move(pair.right));
    ASSERT_OK(stream);
    EXPECT_EQ(ReadText(*stream, 4), "ping");
    std::array<std::byte, 1> byte;
    EXPECT_THAT(stream->Read(byte), StatusIs(kUnavailable));
  });
  ASSERT_OK(peer.Handshake());
  ASSERT_OK(peer.Write("ping"));
  ASSERT_EQ(::SSL_renegotiate(peer.ssl()), 1);
  EXPECT_THAT(peer.Handshake(), testing::Not(IsOk()));
  pair.left.Close();
  EXPECT_OK(server.Join());
}

// --- Bytes that are damaged

void Damage(std::string& bytes, Random& random) {
  for (uint64_t i = 0; i <= random.Below(3); ++i) {
    if (bytes.empty()) return;
    const size_t at = random.Below(bytes.size());
    switch (random.Below(4)) {
      case 0:
        bytes[at] = static_cast<char>(random.Below(256));
        break;
      case 1:
        bytes.erase(at, random.Below(8) + 1);
        break;
      case 2:
        bytes.insert(at, random.Below(8) + 1, static_cast<char>(random.Below(256)));
        break;
      default:
        bytes.resize(at);
    }
  }
}

// What OpenSSL would send now, damaged.
std::string DamagedFlight(SSL* ssl, Random& random) {
  ::SSL_do_handshake(ssl);
  ::ERR_clear_error();
  char* data = nullptr;
  const long size = BIO_get_mem_data(::SSL_get_wbio(ssl), &data);
  std::string flight(data, static_cast<size_t>(size));
  static_cast<void>(BIO_reset(::SSL_get_wbio(ssl)));
  Damage(flight, random);
  return flight;
}

BOBBIN_IO_TEST(TlsPeersTest, DamagedHandshakesEndInOrder) {
  const io::TlsServerContext server = ServerContext();
  const io::TlsClientContext client = ClientContext();
  for (int round = 0; round < Rounds(60); ++round) {
    {
      Pair pair = MakeLocalPair();
      RawTlsPeer peer(pair.left, RawTlsPeer::Side::kClient);
      ASSERT_OK(pair.left.WriteAll(Bytes(DamagedFlight(peer.ssl(), random()))));
      ASSERT_OK(pair.left.ShutdownWrite());
      EXPECT_THAT(io::TlsStream::Accept(server, std::move(pair.right)), StatusIs(kUnavailable));
    }
    Pair pair = MakeLocalPair();
    VirtualThread other = Spawn([&] {
      RawTlsPeer peer(pair.right, RawTlsPeer::Side::kServer);
      std::array<std::byte, 4096> hello;
      const auto received = pair.right.Read(hello);
      ASSERT_OK(received);
      ::BIO_write(::SSL_get_rbio(peer.ssl()), hello.data(), static_cast<int>(*received));
      ASSERT_OK(pair.right.WriteAll(Bytes(DamagedFlight(peer.ssl(), random()))));
      ASSERT_OK(pair.right.ShutdownWrite());
    });
    // What nobody looks at may be damaged without harm.
    const auto connected = io::TlsStream::Connect(client, "localhost", std::move(pair.left));
    EXPECT_TRUE(connected.ok() || absl::IsUnavailable(connected.status()) ||
                absl::IsUnauthenticated(connected.status()))
        << connected.status();
    EXPECT_OK(other.Join());
  }
}

}  // namespace
}  // namespace bobbin::test
