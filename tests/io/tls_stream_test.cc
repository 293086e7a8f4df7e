// SPDX-License-Identifier: Apache-2.0

#include <array>
#include <chrono>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/io/io_test.h"
#include "tests/io/tls_test.h"
#include "tests/support/cross_over.h"

namespace bobbin::test {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using Side = RawTlsPeer::Side;

// --- What it is for

BOBBIN_IO_TEST(TlsStreamTest, ReadReturnsWhatWasWritten) {
  TlsPair pair = MakeTlsPair();
  ASSERT_OK(pair.left.WriteAll(Bytes("ping")));
  EXPECT_EQ(ReadText(pair.right, 4), "ping");
  ASSERT_OK(pair.right.WriteAll(Bytes("pong!")));
  EXPECT_EQ(ReadText(pair.left, 5), "pong!");
}

BOBBIN_IO_TEST(TlsStreamTest, BothEndsKnowWhatWasAgreedOn) {
  TlsPair pair = MakeTlsPair(ClientContext({.alpn = {"a", "b"}}),
                             ServerContext({.alpn = {"c", "b", "a"}}), MakePair());
  for (const io::TlsStream* const end : {&pair.left, &pair.right}) {
    EXPECT_EQ(end->version(), io::TlsVersion::kTls13);
    EXPECT_THAT(std::string(end->cipher()), HasSubstr("TLS_"));
    EXPECT_EQ(end->alpn(), "b");
    EXPECT_FALSE(end->is_resumed());
  }
  EXPECT_EQ(pair.right.server_name(), "localhost");
  EXPECT_THAT(pair.left.peer_certificate_pem(), HasSubstr("BEGIN CERTIFICATE"));
  EXPECT_THAT(pair.right.peer_certificate_pem(), IsEmpty());
}

BOBBIN_IO_TEST(TlsStreamTest, ItRunsOverUnixStreams) {
  auto ends = io::UnixStream::Pair();
  ASSERT_OK(ends);
  const io::TlsServerContext server = ServerContext();
  VirtualThread other = Spawn([&, stream = std::move(ends->second)]() mutable {
    auto peer = io::TlsStream::Accept(server, std::move(stream));
    ASSERT_OK(peer);
    EXPECT_EQ(ReadText(*peer, 2), "hi");
  });
  auto client = io::TlsStream::Connect(ClientContext(), "localhost", std::move(ends->first));
  ASSERT_OK(client);
  EXPECT_OK(client->WriteAll(Bytes("hi")));
  EXPECT_OK(other.Join());
}

BOBBIN_IO_TEST(TlsStreamTest, ItConnectsByName) {
  auto listener = io::TcpListener::Bind("127.0.0.1:0");
  ASSERT_OK(listener);
  const io::TlsServerContext server = ServerContext();
  VirtualThread other = Spawn([&] {
    auto stream = listener->Accept();
    ASSERT_OK(stream);
    auto peer = io::TlsStream::Accept(server, *std::move(stream));
    ASSERT_OK(peer);
    EXPECT_EQ(peer->server_name(), "localhost");
  });
  EXPECT_OK(io::TlsStream::Connect(ClientContext(), "localhost", listener->local_address().port(),
                                   {.families = io::Families::kIpv4}));
  EXPECT_OK(other.Join());
}

BOBBIN_IO_TEST(TlsStreamTest, ManySmallPartsAndOneLargeOneArriveInOrder) {
  TlsPair pair = MakeTlsPair();
  std::string all;
  std::vector<std::string> texts;
  for (size_t i = 0; i < 300; ++i) {
    const size_t bytes = i == 150 ? 100'000 : i % 7 == 0 ? 0 : random().Below(400);
    texts.emplace_back(bytes, static_cast<char>('a' + i % 26));
    all += texts.back();
  }
  std::vector<std::span<const std::byte>> parts;
  for (const std::string& text : texts) parts.push_back(Bytes(text));
  VirtualThread writer = Spawn([&] {
    const io::Progress progress = pair.left.WriteCounted(parts);
    EXPECT_OK(progress.status);
    EXPECT_EQ(progress.bytes, all.size());
  });
  EXPECT_EQ(ReadText(pair.right, all.size()), all);
  EXPECT_OK(writer.Join());
}

BOBBIN_IO_TEST(TlsStreamTest, EmptyTransfersReturnAtOnce) {
  TlsPair pair = MakeTlsPair();
  EXPECT_THAT(pair.left.Read(std::span<std::byte>()), IsOkAndHolds(0u));
  EXPECT_THAT(pair.left.Write(std::span<const std::byte>()), IsOkAndHolds(0u));
  EXPECT_OK(pair.left.WriteAll(std::span<const std::byte>()));
  EXPECT_OK(pair.left.ReadExact({}));
}

// A reader that waits does not hold a writer up, on the same end.
BOBBIN_IO_TEST(TlsStreamTest, AReaderThatWaitsDoesNotHoldAWriterUp) {
  TlsPair pair = MakeTlsPair();
  WaitProbe probe;
  VirtualThread reader = Spawn([&] {
    probe.Attach();
    EXPECT_EQ(ReadText(pair.left, 5), "reply");
  });
  probe.AwaitParked();
  ASSERT_OK(pair.left.WriteAll(Bytes("question")));
  ASSERT_EQ(ReadText(pair.right, 8), "question");
  ASSERT_OK(pair.right.WriteAll(Bytes("reply")));
  EXPECT_OK(reader.Join());
}

absl::Status SendPattern(io::TlsStream& stream, size_t bytes, size_t piece_max) {
  std::vector<std::byte> piece(piece_max);
  for (size_t at = 0; at < bytes;) {
    const size_t size = std::min(piece_max - at % (piece_max / 2), bytes - at);
    for (size_t i = 0; i < size; ++i) piece[i] = PatternAt(at + i);
    BOBBIN_RETURN_IF_ERROR(stream.WriteAll(std::span(piece).first(size)));
    at += size;
  }
  return stream.ShutdownWrite();
}

absl::Status ExpectPattern(io::TlsStream& stream, size_t bytes, size_t buffer_bytes) {
  std::vector<std::byte> buffer(buffer_bytes);
  for (size_t at = 0;;) {
    BOBBIN_ASSIGN_OR_RETURN(const size_t received, stream.Read(buffer));
    if (received == 0) {
      return at == bytes ? absl::OkStatus() : absl::DataLossError("the end came too early");
    }
    for (size_t i = 0; i < received; ++i, ++at) {
      if (buffer[i] != PatternAt(at)) return absl::DataLossError("wrong byte");
    }
  }
}

BOBBIN_IO_TEST(TlsStreamTest, MuchGoesBothWaysAtOnce) {
  TlsPair pair = MakeTlsPair();
  const size_t bytes = static_cast<size_t>(Rounds(8)) << 20;
  TaskGroup group({.placement = Placement::kSpread});
  for (io::TlsStream* const end : {&pair.left, &pair.right}) {
    const size_t buffer_bytes = end == &pair.left ? 50'000 : 700;
    group.Spawn([=] { return SendPattern(*end, bytes, 150'000); });
    group.Spawn([=] { return ExpectPattern(*end, bytes, buffer_bytes); });
  }
  EXPECT_OK(group.Wait());
}

BOBBIN_IO_TEST(TlsStreamTest, ThreadsThatMigrateGoOnWhereTheyAre) {
  if (carriers() == 1) return;
  TlsPair pair = MakeTlsPair();
  VirtualThread moving = Spawn({.migrates = true}, [&] {
    for (int round = 0; round < Rounds(50); ++round) {
      ASSERT_OK(pair.left.WriteAll(Bytes("ping")));
      CrossOver();
      ASSERT_EQ(ReadText(pair.right, 4), "ping");
    }
  });
  EXPECT_OK(moving.Join());
}

BOBBIN_IO_FOREIGN_TEST(TlsStreamTest, ForeignThreadsBlockInIt) {
  const io::TlsServerContext server = ServerContext();
  Pair pair = MakePair();
  VirtualThread other = runtime().Spawn([&] {
    auto peer = io::TlsStream::Accept(server, std::move(pair.right));
    ASSERT_OK(peer);
    EXPECT_OK(peer->WriteAll(Bytes(ReadText(*peer, 3))));
  });
  auto client = io::TlsStream::Connect(ClientContext(), "localhost", std::move(pair.left));
  ASSERT_OK(client);
  EXPECT_OK(client->WriteAll(Bytes("abc")));
  EXPECT_EQ(ReadText(*client, 3), "abc");
  EXPECT_OK(other.Join());
}

// --- Who it is

BOBBIN_IO_TEST(TlsStreamTest, ACertificateForAnotherNameIsRefused) {
  TlsEnds ends = ShakeHands(ClientContext(), ServerContext(), MakePair(), "other.test");
  ASSERT_THAT(ends.client, StatusIs(kUnauthenticated));
  EXPECT_EQ(MessageOf(ends.client.status()),
            "tls handshake with other.test: the peer's certificate is not good: hostname mismatch");
  ASSERT_THAT(ends.server, StatusIs(kUnavailable));
  EXPECT_THAT(std::string(MessageOf(ends.server.status())), HasSubstr("bad certificate"));

  ends = ShakeHands(ClientContext(), ServerContext(), MakePair(), "127.0.0.2");
  ASSERT_THAT(ends.client, StatusIs(kUnauthenticated));
  EXPECT_THAT(std::string(MessageOf(ends.client.status())), HasSubstr("IP address mismatch"));
  ends = ShakeHands(ClientContext(), ServerContext(), MakePair(), "127.0.0.1");
  EXPECT_OK(ends.client);
  EXPECT_OK(ends.server);
}

BOBBIN_IO_TEST(TlsStreamTest, ACertificateOfAnotherTimeIsRefused) {
  const TestAuthority& authority = TestAuthority::Default();
  const auto refusal = [&](const TestAuthority::Wish& wish) {
    const TlsEnds ends = ShakeHands(
        ClientContext(), ServerContext({.certificates = {authority.Issue(wish)}}), MakePair());
    EXPECT_THAT(ends.client, StatusIs(kUnauthenticated));
    return std::string(MessageOf(ends.client.status()));
  };
  EXPECT_THAT(refusal({.begins = hours(-2), .ends = hours(-1)}), HasSubstr("has expired"));
  EXPECT_THAT(refusal({.begins = hours(1), .ends = hours(2)}), HasSubstr("not yet valid"));
}

BOBBIN_IO_TEST(TlsStreamTest, ACertificateOfSomebodyElseIsRefused) {
  const TestAuthority other("another authority");
  const io::TlsServerContext server = ServerContext({.certificates = {other.Issue()}});
  const TlsEnds ends = ShakeHands(ClientContext(), server, MakePair());
  ASSERT_THAT(ends.client, StatusIs(kUnauthenticated));
  EXPECT_THAT(std::string(MessageOf(ends.client.status())),
              HasSubstr("unable to get local issuer certificate"));
  ASSERT_THAT(ends.server, StatusIs(kUnavailable));
  EXPECT_THAT(std::string(MessageOf(ends.server.status())), HasSubstr("unknown ca"));
  EXPECT_EQ(server.Statistics().failed, 1U);
  EXPECT_EQ(server.Statistics().handshakes, 0U);

  const TlsEnds careless =
      ShakeHands(ClientContext({.server_certificates = io::ServerCertificates::kNotVerified}),
                 server, MakePair(), "whoever.test");
  EXPECT_OK(careless.client);
  EXPECT_OK(careless.server);
}

BOBBIN_IO_TEST(TlsStreamTest, ACertificateMayBeSignedByOneInBetween) {
  const io::TlsServerContext server =
      ServerContext({.certificates = {TestAuthority::Default().Issue({.has_intermediate = true})}});
  const TlsEnds ends = ShakeHands(ClientContext(), server, MakePair());
  EXPECT_OK(ends.client);
  EXPECT_OK(ends.server);
}

BOBBIN_IO_TEST(TlsStreamTest, TheNameDecidesWhichCertificateIsShown) {
  const TestAuthority& authority = TestAuthority::Default();
  const io::TlsServerContext server =
      ServerContext({.certificates = {authority.Issue({.names = {"DNS:a.test"}}),
                                      authority.Issue({.names = {"DNS:b.test", "DNS:*.b.test"},
                                                       .key = TestAuthority::Key::kRsa})}});
  const io::TlsClientContext client = ClientContext();
  for (const char* const name : {"a.test", "b.test", "B.Test", "b.test.", "x.b.test"}) {
    const TlsEnds ends = ShakeHands(client, server, MakePair(), name);
    EXPECT_OK(ends.client) << name;
    EXPECT_OK(ends.server) << name;
  }
  for (const char* const name : {"c.test", "x.y.b.test", "x.a.test"}) {
    EXPECT_THAT(ShakeHands(client, server, MakePair(), name).client, StatusIs(kUnauthenticated))
        << name;
  }
}

BOBBIN_IO_TEST(TlsStreamTest, AClientMayHaveToSayWhoItIs) {
  const TestAuthority clients("an authority for clients");
  const io::TlsServerContext server =
      ServerContext({.client_certificates = io::ClientCertificates::kRequired,
                     .client_roots_pem = clients.root_pem()});
  TlsEnds known =
      ShakeHands(ClientContext({.certificate = clients.Issue({.names = {"DNS:client.test"}})}),
                 server, MakePair());
  ASSERT_OK(known.client);
  ASSERT_OK(known.server);
  EXPECT_THAT(known.server->peer_certificate_pem(), Not(IsEmpty()));

  TlsEnds nobody = ShakeHands(ClientContext(), server, MakePair());
  ASSERT_THAT(nobody.server, StatusIs(kUnauthenticated));
  EXPECT_EQ(MessageOf(nobody.server.status()), "tls handshake: the peer has no certificate");
  // With TLS 1.3 a client learns of it only when it reads.
  if (nobody.client.ok()) {
    std::array<std::byte, 1> byte;
    const auto read = nobody.client->Read(byte);
    ASSERT_THAT(read, StatusIs(kUnavailable));
    EXPECT_THAT(std::string(MessageOf(read.status())), HasSubstr("certificate required"));
  }
  TlsEnds stranger = ShakeHands(ClientContext({.certificate = TestAuthority::Default().Issue()}),
                                server, MakePair());
  EXPECT_THAT(stranger.server, StatusIs(kUnauthenticated));
}

BOBBIN_IO_TEST(TlsStreamTest, WithoutACommonProtocolThereIsNoConnection) {
  const TlsEnds ends =
      ShakeHands(ClientContext({.alpn = {"h2"}}), ServerContext({.alpn = {"x"}}), MakePair());
  ASSERT_THAT(ends.client, StatusIs(kUnavailable));
  EXPECT_THAT(std::string(MessageOf(ends.client.status())), HasSubstr("no application protocol"));
  EXPECT_THAT(ends.server, StatusIs(kUnavailable));
}

// --- Sessions

BOBBIN_IO_TEST(TlsStreamTest, TheSecondConnectionResumesTheSession) {
  for (const bool is_old : {false, true}) {
    const io::TlsServerContext server = ServerContext();
    const io::TlsClientContext client = ClientContext();
    auto listener = io::TcpListener::Bind("127.0.0.1:0");
    ASSERT_OK(listener);
    for (int i = 0; i < 3; ++i) {
      Pair pair;
      pair.left = *io::TcpStream::Connect(listener->local_address());
      pair.right = *listener->Accept();
      if (is_old) {
        // An old client, and a session by its ticket all the same.
        RawTlsPeer peer(pair.left, Side::kClient, [](SSL_CTX* context) {
          SSL_CTX_set_max_proto_version(context, TLS1_2_VERSION);
        });
        VirtualThread other = Spawn([&] {
          auto accepted = io::TlsStream::Accept(server, std::move(pair.right));
          ASSERT_OK(accepted);
          EXPECT_EQ(accepted->version(), io::TlsVersion::kTls12);
        });
        EXPECT_OK(peer.Handshake());
        EXPECT_OK(other.Join());
        continue;
      }
      TlsPair ends = MakeTlsPair(client, server, std::move(pair));
      EXPECT_EQ(ends.left.is_resumed(), i > 0);
      EXPECT_EQ(ends.right.is_resumed(), i > 0);
      // The tickets come with the first bytes.
      ASSERT_OK(ends.right.WriteAll(Bytes("x")));
      EXPECT_EQ(ReadText(ends.left, 1), "x");
    }
    if (is_old) continue;
    EXPECT_EQ(server.Statistics().handshakes, 3U);
    EXPECT_EQ(server.Statistics().resumed, 2U);
    EXPECT_EQ(client.Statistics().resumed, 2U);
  }
}

// --- The end

BOBBIN_IO_TEST(TlsStreamTest, AnEndThatIsSaidIsAnEnd) {
  TlsPair pair = MakeTlsPair();
  ASSERT_OK(pair.left.WriteAll(Bytes("last")));
  ASSERT_OK(pair.left.ShutdownWrite());
  EXPECT_EQ(ReadText(pair.right, 5), "last");
  std::array<std::byte, 1> byte;
  EXPECT_THAT(pair.right.Read(byte), IsOkAndHolds(0u));
  EXPECT_THAT(pair.right.ReadExact(byte), StatusIs(kOutOfRange));
  EXPECT_THAT(pair.left.WriteAll(Bytes("x")), StatusIs(kFailedPrecondition));
  // The other direction goes on.
  ASSERT_OK(pair.right.WriteAll(Bytes("answer")));
  EXPECT_EQ(ReadText(pair.left, 6), "answer");
}

BOBBIN_IO_TEST(TlsStreamTest, ACloseSaysGoodbye) {
  TlsPair pair = MakeTlsPair();
  ASSERT_OK(pair.left.WriteAll(Bytes("bye")));
  pair.left = {};
  EXPECT_EQ(ReadText(pair.right, 3), "bye");
  std::array<std::byte, 1> byte;
  EXPECT_THAT(pair.right.Read(byte), IsOkAndHolds(0u));
}

BOBBIN_IO_TEST(TlsStreamTest, AnEndThatIsNotSaidIsNone) {
  TlsPair pair = MakeTlsPair();
  ASSERT_OK(pair.left.WriteAll(Bytes("half")));
  ASSERT_OK(pair.left.tcp().ShutdownWrite());
  EXPECT_EQ(ReadText(pair.right, 4), "half");
  std::array<std::byte, 1> byte;
  for (int i = 0; i < 2; ++i) {
    const auto read = pair.right.Read(byte);
    ASSERT_THAT(read, StatusIs(kUnavailable));
    EXPECT_THAT(std::string(MessageOf(read.status())), HasSubstr("cut off"));
  }
}

BOBBIN_IO_TEST(TlsStreamTest, CloseEndsThoseInside) {
  TlsPair pair = MakeTlsPair();
  WaitProbe probe;
  VirtualThread reader = Spawn([&] {
    probe.Attach();
    std::array<std::byte, 1> byte;
    EXPECT_THAT(pair.left.Read(byte), StatusIs(kAborted));
  });
  probe.AwaitParked();
  pair.left.Close();
  EXPECT_OK(reader.Join());
  EXPECT_THAT(pair.left.WriteAll(Bytes("x")), StatusIs(kAborted));
  std::array<std::byte, 1> byte;
  EXPECT_THAT(pair.left.Read(byte), StatusIs(kAborted));
  EXPECT_THAT(pair.left.ShutdownWrite(), StatusIs(kAborted));
  EXPECT_THAT(pair.right.Read(byte), IsOkAndHolds(0u));
}

}  // namespace
}  // namespace bobbin::test
