// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <chrono>
#include <cstddef>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "openssl/err.h"
#include "openssl/x509v3.h"

#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/status.h>
#include <bobbin/io/process.h>

#include "tests/io/http_test.h"
#include "tests/io/io_test.h"
#include "tests/io/temporary_directory.h"
#include "tests/io/tls_test.h"

namespace bobbin::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
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

BOBBIN_IO_TEST(TlsPeersTest, AClientOfOpenSslResumesItsSession) {
  const TemporaryDirectory directory;
  const io::TlsServerContext context = ServerContext();
  for (const std::string_view version : {"-tls1_2", "-tls1_3"}) {
    const std::string session = directory / ("session" + std::string(version));
    for (const bool is_first : {true, false}) {
      io::TcpListener listener = ListenHere();
      auto client = io::Process::Spawn(
          {.program = "openssl",
           .arguments = {"s_client", "-connect", listener.local_address().ToString(), "-quiet",
                         is_first ? "-sess_out" : "-sess_in", session, std::string(version)},
           .input = io::StandardStream::kPipe,
           .output = io::StandardStream::kPipe,
           .error = io::StandardStream::kNull});
      ASSERT_OK(client);
      auto accepted = listener.Accept();
      ASSERT_OK(accepted);
      auto stream = io::TlsStream::Accept(context, *std::move(accepted));
      ASSERT_OK(stream);
      EXPECT_EQ(stream->is_resumed(), !is_first) << version;
      // Once it has these, it has its ticket, too.
      ASSERT_OK(stream->WriteAll(Bytes("answer\n")));
      EXPECT_EQ(ReadUntil(client->output(), "\n"), "answer\n");
      ASSERT_OK(stream->ShutdownWrite());
      EXPECT_OK(client->Wait());
    }
  }
  EXPECT_EQ(context.Statistics().resumed, 2U);
}

// --- Which certificate a client is shown

using Key = TestAuthority::Key;

std::string_view KindOf(X509* certificate) {
  const int kind = ::EVP_PKEY_get_base_id(::X509_get0_pubkey(certificate));
  return kind == EVP_PKEY_RSA ? "RSA" : kind == EVP_PKEY_EC ? "ECDSA" : "Ed25519";
}

struct Shown {
  std::string kind;  // Empty: there was no handshake.
  bool is_for_name = false;

  friend bool operator==(const Shown&, const Shown&) = default;
};

// What a client gets that asks for `name`, and can check `algorithms`.
Shown ShownTo(const io::TlsServerContext& context, const std::string& name, const char* algorithms,
              int version) {
  Pair pair = MakePair();
  RawTlsPeer peer(pair.left, RawTlsPeer::Side::kClient);
  SSL_set_min_proto_version(peer.ssl(), version);
  SSL_set_max_proto_version(peer.ssl(), version);
  EXPECT_EQ(SSL_set1_sigalgs_list(peer.ssl(), algorithms), 1);
  if (!name.empty()) SSL_set_tlsext_host_name(peer.ssl(), name.c_str());
  VirtualThread server =
      Spawn([&] { io::TlsStream::Accept(context, std::move(pair.right)).status().IgnoreError(); });
  Shown shown;
  if (peer.Handshake().ok()) {
    X509* const certificate = ::SSL_get1_peer_certificate(peer.ssl());
    shown.kind = KindOf(certificate);
    shown.is_for_name = ::X509_check_host(certificate, name.data(), name.size(), 0, nullptr) == 1;
    ::X509_free(certificate);
  }
  EXPECT_OK(server.Join());
  return shown;
}

constexpr const char* kRsaAlone = "rsa_pss_rsae_sha256:RSA+SHA256";
constexpr const char* kEcdsaAlone = "ECDSA+SHA256";
constexpr const char* kEd25519Alone = "ed25519";

BOBBIN_IO_TEST(TlsPeersTest, AClientIsShownTheCertificateThatItCanCheck) {
  const TestAuthority& authority = TestAuthority::Default();
  const auto issue = [&](Key key, std::vector<std::string> names) {
    return authority.Issue({.names = std::move(names), .key = key});
  };
  const io::TlsServerContext context = ServerContext(
      {.certificates = {
           issue(Key::kEcdsa, {"DNS:a.test", "DNS:x.a.test"}),
           issue(Key::kRsa, {"DNS:b.test", "DNS:*.b.test"}), issue(Key::kRsa, {"DNS:a.test"}),
           issue(Key::kEcdsa, {"DNS:a.test", "DNS:b.test"}), issue(Key::kEcdsa, {"DNS:c.b.test"}),
           issue(Key::kEd25519, {"DNS:b.test", "DNS:d.test"})}});
  const Shown none = {};
  for (const int version : {TLS1_2_VERSION, TLS1_3_VERSION}) {
    const auto shown = [&](const std::string& name, const char* algorithms) {
      return ShownTo(context, name, algorithms, version);
    };
    SCOPED_TRACE(version == TLS1_2_VERSION ? "TLS 1.2" : "TLS 1.3");
    EXPECT_EQ(shown("a.test", kEcdsaAlone), (Shown{"ECDSA", true}));
    EXPECT_EQ(shown("a.test", kRsaAlone), (Shown{"RSA", true}));
    EXPECT_EQ(shown("a.test", kEd25519Alone), none);
    EXPECT_EQ(shown("b.test", kEcdsaAlone), (Shown{"ECDSA", true}));
    EXPECT_EQ(shown("b.test", kRsaAlone), (Shown{"RSA", true}));
    EXPECT_EQ(shown("b.test", kEd25519Alone), (Shown{"Ed25519", true}));
    // One has the name as it stands, another one by a wildcard.
    EXPECT_EQ(shown("c.b.test", kEcdsaAlone), (Shown{"ECDSA", true}));
    EXPECT_EQ(shown("c.b.test", kRsaAlone), (Shown{"RSA", true}));
    EXPECT_EQ(shown("d.test", kEd25519Alone), (Shown{"Ed25519", true}));
    // Better none than one for somebody else.
    EXPECT_EQ(shown("d.test", kRsaAlone), none);
    EXPECT_EQ(shown("x.a.test", kRsaAlone), none);
    // Who asks for nobody, or for nobody who is here, gets the first one, or its like.
    EXPECT_EQ(shown("", kEcdsaAlone).kind, "ECDSA");
    EXPECT_EQ(shown("", kRsaAlone).kind, "RSA");
    EXPECT_EQ(shown("", kEd25519Alone), none);
    EXPECT_EQ(shown("nobody.test", kRsaAlone), (Shown{"RSA", false}));
    EXPECT_EQ(shown("nobody.test", kEd25519Alone), none);
  }
}

BOBBIN_IO_TEST(TlsPeersTest, CertificatesForAddressesBelongTogetherToo) {
  const TestAuthority& authority = TestAuthority::Default();
  const auto issue = [&](Key key, std::string name) {
    return authority.Issue({.names = {std::move(name)}, .key = key});
  };
  const io::TlsServerContext context = ServerContext(
      {.certificates = {issue(Key::kEcdsa, "IP:127.0.0.1"), issue(Key::kEd25519, "IP:127.0.0.2"),
                        issue(Key::kRsa, "IP:127.0.0.1")}});
  EXPECT_EQ(ShownTo(context, "", kEcdsaAlone, TLS1_3_VERSION).kind, "ECDSA");
  EXPECT_EQ(ShownTo(context, "", kRsaAlone, TLS1_3_VERSION).kind, "RSA");
  EXPECT_EQ(ShownTo(context, "", kEd25519Alone, TLS1_3_VERSION).kind, "");
}

BOBBIN_IO_TEST(TlsPeersTest, AClientOfOpenSslIsShownTheCertificateThatItCanCheck) {
  const TestAuthority& authority = TestAuthority::Default();
  const TemporaryDirectory directory;
  std::ofstream(directory / "roots.pem") << authority.root_pem();
  const io::TlsServerContext context = ServerContext(
      {.certificates = {authority.Issue(), authority.Issue({.names = {"DNS:b.test"}}),
                        authority.Issue({.names = {"DNS:b.test"}, .key = Key::kRsa})}});
  for (const std::string_view version : {"-tls1_2", "-tls1_3"}) {
    for (const std::string kind : {"RSA", "ECDSA"}) {
      io::TcpListener listener = ListenHere();
      // Its own root is signed with ECDSA, which it has to be able to check as well.
      const std::string algorithms = kind == "RSA" ? "RSA-PSS+SHA256:RSA+SHA256" : "ECDSA+SHA256";
      auto client = io::Process::Spawn(
          {.program = "openssl",
           .arguments = {"s_client", "-connect", listener.local_address().ToString(), "-CAfile",
                         directory / "roots.pem", "-servername", "b.test", "-verify_hostname",
                         "b.test", "-sigalgs", algorithms, std::string(version)},
           .input = io::StandardStream::kPipe,
           .output = io::StandardStream::kPipe,
           .error = io::StandardStream::kNull});
      ASSERT_OK(client);
      auto accepted = listener.Accept();
      ASSERT_OK(accepted);
      auto stream = io::TlsStream::Accept(context, *std::move(accepted));
      ASSERT_OK(stream) << kind << ' ' << version;
      ASSERT_OK(stream->ShutdownWrite());
      const std::string said = ReadUntil(client->output(), "\nVerif");
      EXPECT_THAT(said, HasSubstr("Peer signature type: " + kind)) << said;
      client->input().Close();
      stream->Close();
      client->Wait().IgnoreError();
    }
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

// The answer to a change of keys is no reason to wait: a peer that sends, and takes nothing, is
// read all the same, and gets the answers with what is written next.
BOBBIN_IO_TEST(TlsPeersTest, APeerThatTakesNothingDoesNotHoldItsReaderUpByChangingKeys) {
  constexpr int kChanges = 40;
  const io::TlsServerContext context = ServerContext();
  Pair pair = MakeLocalPair(8192);
  RawTlsPeer peer(pair.left, RawTlsPeer::Side::kClient);
  Event is_full;
  Event is_read;
  Event is_taken;
  size_t sent = 0;
  VirtualThread server = Spawn([&] {
    auto stream = io::TlsStream::Accept(context, std::move(pair.right));
    ASSERT_OK(stream);
    {
      const DeadlineScope scope(milliseconds(5));
      const std::vector<std::byte> much(1 << 20, std::byte{'x'});
      const io::Progress progress = stream->WriteCounted(much);
      ASSERT_THAT(progress.status, StatusIs(kDeadlineExceeded));
      sent = progress.bytes;
    }
    is_full.Set();
    {
      const DeadlineScope scope(seconds(5));  // An eighth of a second for each.
      for (int i = 0; i < kChanges; ++i) ASSERT_EQ(ReadText(*stream, 4), "ping");
    }
    is_read.Set();
    ASSERT_OK(stream->WriteAll(Bytes("pong")));
    ASSERT_OK(is_taken.Wait());
    // With room it goes at once, and by itself.
    ASSERT_EQ(ReadText(*stream, 4), "ping");
    ASSERT_OK(stream->WriteAll(Bytes("pong")));
  });
  ASSERT_OK(peer.Handshake());
  ASSERT_OK(is_full.Wait());
  for (int i = 0; i < kChanges; ++i) {
    ASSERT_OK(peer.UpdateKeys(SSL_KEY_UPDATE_REQUESTED));
    ASSERT_OK(peer.Write("ping"));
  }
  ASSERT_OK(is_read.Wait());
  EXPECT_THAT(peer.Read(sent + 4), IsOkAndHolds(std::string(sent, 'x') + "pong"));
  is_taken.Set();
  ASSERT_OK(peer.UpdateKeys(SSL_KEY_UPDATE_REQUESTED));
  ASSERT_OK(peer.Write("ping"));
  EXPECT_THAT(peer.Read(4), IsOkAndHolds(std::string("pong")));
  EXPECT_OK(server.Join());
}

BOBBIN_IO_TEST(TlsPeersTest, APeerThatTakesNoAnswersCannotHaveThemHeapedUp) {
  const io::TlsServerContext context = ServerContext();
  Pair pair = MakeLocalPair(8192);
  RawTlsPeer peer(pair.left, RawTlsPeer::Side::kClient);
  VirtualThread server = Spawn([&] {
    auto stream = io::TlsStream::Accept(context, std::move(pair.right));
    ASSERT_OK(stream);
    std::array<std::byte, 1> byte;
    const auto read = stream->Read(byte);
    ASSERT_THAT(read, StatusIs(kUnavailable));
    EXPECT_EQ(MessageOf(read.status()), "tls read: the peer takes no answers");
    EXPECT_THAT(stream->WriteAll(Bytes("x")), StatusIs(kUnavailable));
  });
  ASSERT_OK(peer.Handshake());
  int changes = 0;
  while (changes < 100'000 && peer.UpdateKeys(SSL_KEY_UPDATE_REQUESTED).ok()) ++changes;
  EXPECT_GT(changes, 1000);
  EXPECT_LT(changes, 100'000);
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
