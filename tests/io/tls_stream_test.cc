// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "openssl/err.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/event.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/platform_pool.h>
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
  const size_t bytes = static_cast<size_t>(Rounds(4)) << 20;
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
    for (int round = 0; round < Rounds(20); ++round) {
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
                                                       .key = TestAuthority::Key::kEd25519})}});
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

BOBBIN_IO_TEST(TlsStreamTest, ARenewedContextShowsTheNewCertificateAndKnowsOldSessions) {
  const TestAuthority& authority = TestAuthority::Default();
  const io::TlsServerContext server =
      ServerContext({.certificates = {authority.Issue({.ends = hours(1)})}});
  const io::TlsClientContext client = ClientContext();
  auto listener = io::TcpListener::Bind("127.0.0.1:0");
  ASSERT_OK(listener);
  const auto connect = [&](const io::TlsClientContext& context) {
    Pair pair;
    pair.left = *io::TcpStream::Connect(listener->local_address());
    pair.right = *listener->Accept();
    TlsPair ends = MakeTlsPair(context, server, std::move(pair));
    EXPECT_OK(ends.right.WriteAll(Bytes("x")));
    EXPECT_EQ(ReadText(ends.left, 1), "x");
    return ends;
  };
  TlsPair old = connect(client);
  EXPECT_THAT(server.Renew({}), StatusIs(kInvalidArgument));
  const io::TlsCertificate next = authority.Issue();
  ASSERT_OK(server.Renew({.certificates = {next}}));

  EXPECT_TRUE(connect(client).left.is_resumed());
  const TlsPair fresh = connect(ClientContext());
  EXPECT_EQ(fresh.left.peer_certificate_pem(), next.chain_pem);
  ASSERT_OK(old.left.WriteAll(Bytes("still")));
  EXPECT_EQ(ReadText(old.right, 5), "still");
}

// --- Where handshakes compute

BOBBIN_IO_TEST(TlsStreamTest, HandshakesAreComputedOnThePoolThatIsGiven) {
  PlatformPool pool({.name = "handshakes", .threads = 2});
  const io::TlsServerContext server = ServerContext({.handshakes = &pool});
  const io::TlsClientContext client = ClientContext();
  TaskGroup group({.placement = Placement::kSpread});
  const int rounds = Rounds(40);
  for (int i = 0; i < rounds; ++i) {
    group.Spawn([&] {
      TlsPair pair = MakeTlsPair(client, server, MakeLocalPair());
      ASSERT_OK(pair.left.WriteAll(Bytes("x")));
      EXPECT_EQ(ReadText(pair.right, 1), "x");
    });
  }
  EXPECT_OK(group.Wait());
  // The client's hello, and its end.
  EXPECT_EQ(pool.Statistics().completed, 2 * static_cast<uint64_t>(rounds));
  EXPECT_EQ(server.Statistics().handshakes, static_cast<uint64_t>(rounds));

  // What is wrong is told as ever.
  const TlsEnds ends = ShakeHands(client, server, MakePair(), "other.test");
  EXPECT_THAT(ends.client, StatusIs(kUnauthenticated));
  EXPECT_THAT(ends.server, StatusIs(kUnavailable));
}

BOBBIN_IO_TEST(TlsStreamTest, AHandshakeWaitsForAPoolAsLongAsItMay) {
  PlatformPool pool({.name = "handshakes", .threads = 1, .queue_max = 1});
  const io::TlsServerContext server = ServerContext({.handshakes = &pool});
  Event go_on;
  VirtualThread busy =
      Spawn([&] { EXPECT_OK(pool.RunBlocking([&] { go_on.Wait().IgnoreError(); })); });
  AwaitTrue([&] { return pool.Statistics().active == 1; });
  // One byte of a hello is enough to want a look at it.
  const auto pair_with_a_byte = [] {
    Pair pair = MakePair();
    EXPECT_OK(pair.left.WriteAll(Bytes("\x16")));
    return pair;
  };
  {
    Pair pair = pair_with_a_byte();
    const DeadlineScope scope(milliseconds(5));
    EXPECT_THAT(io::TlsStream::Accept(server, std::move(pair.right)), StatusIs(kDeadlineExceeded));
    EXPECT_EQ(pool.Statistics().taken_back, 1U);
  }
  Pair pair = pair_with_a_byte();
  VirtualThread queued = Spawn([&] {
    EXPECT_THAT(io::TlsStream::Accept(server, std::move(pair.right)), StatusIs(kCancelled));
  });
  AwaitTrue([&] { return pool.Statistics().queued == 1; });
  Pair other = pair_with_a_byte();
  EXPECT_THAT(io::TlsStream::Accept(server, std::move(other.right)),
              StatusIs(absl::StatusCode::kResourceExhausted));
  queued.Cancel();
  EXPECT_OK(queued.Join());
  go_on.Set();
  EXPECT_OK(busy.Join());
  const TlsEnds ends = ShakeHands(ClientContext(), server, MakePair());
  EXPECT_OK(ends.client);
  EXPECT_OK(ends.server);
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

// --- Deadlines, and requests to stop

BOBBIN_IO_TEST(TlsStreamTest, AHandshakeMeetsItsDeadline) {
  const io::TlsServerContext server = ServerContext();
  const io::TlsClientContext client = ClientContext();
  Pair pair = MakePair();
  {
    const DeadlineScope scope(milliseconds(5));
    EXPECT_THAT(io::TlsStream::Accept(server, std::move(pair.right)), StatusIs(kDeadlineExceeded));
  }
  EXPECT_THAT(io::TlsStream::Connect(client, "localhost", std::move(pair.left)),
              StatusIs(kUnavailable));
  pair = MakePair();
  VirtualThread asked = Spawn([&] {
    EXPECT_THAT(io::TlsStream::Connect(client, "localhost", std::move(pair.left)),
                StatusIs(kCancelled));
  });
  std::array<std::byte, 1> hello;
  EXPECT_OK(pair.right.ReadExact(hello));
  asked.Cancel();
  EXPECT_OK(asked.Join());
  EXPECT_EQ(server.Statistics().failed, 1U);
  EXPECT_EQ(client.Statistics().failed, 2U);
}

BOBBIN_IO_TEST(TlsStreamTest, ReadsThatAreCutShortLoseNothing) {
  TlsPair pair = MakeTlsPair();
  const int rounds = Rounds(200);
  VirtualThread writer = Spawn([&] {
    std::array<std::byte, 1000> bytes;
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = PatternAt(i);
    for (int i = 0; i < rounds; ++i) {
      ASSERT_OK(pair.left.WriteAll(bytes));
      if (!random().OneIn(4)) continue;
      EXPECT_OK(SleepFor(std::chrono::microseconds(random().Below(300))));
    }
    EXPECT_OK(pair.left.ShutdownWrite());
  });
  Random own(random().Next());
  size_t have = 0;
  while (true) {
    std::array<std::byte, 700> buffer;
    absl::StatusOr<size_t> received;
    {
      const DeadlineScope scope(std::chrono::microseconds(own.Below(200)));
      received = pair.right.Read(buffer);
    }
    if (absl::IsDeadlineExceeded(received.status())) {
      Yield();
      continue;
    }
    ASSERT_OK(received);
    if (*received == 0) break;
    for (size_t i = 0; i < *received; ++i, ++have) ASSERT_EQ(buffer[i], PatternAt(have % 1000));
  }
  EXPECT_EQ(have, static_cast<size_t>(rounds) * 1000);
  EXPECT_OK(writer.Join());
}

// A record that was sent in part is finished before the next one, so that the stream goes on.
BOBBIN_IO_TEST(TlsStreamTest, WritesThatAreCutShortTellWhatWasTakenAndTheNextGoOn) {
  TlsPair pair = MakeTlsPair(ClientContext(), ServerContext(), MakeLocalPair(8192));
  const size_t bytes = static_cast<size_t>(Rounds(3'000'000));
  std::vector<std::byte> all(bytes);
  for (size_t i = 0; i < bytes; ++i) all[i] = PatternAt(i);
  // Nobody reads yet, so that this one ends in the middle of a record.
  size_t sent = 0;
  {
    const DeadlineScope scope(milliseconds(5));
    const io::Progress progress = pair.left.WriteCounted(all);
    ASSERT_THAT(progress.status, StatusIs(kDeadlineExceeded));
    sent = progress.bytes;
    ASSERT_LT(sent, bytes);
  }
  VirtualThread writer = Spawn([&] {
    Random own(random().Next());
    while (sent < bytes) {
      const size_t piece = std::min<size_t>(own.Below(200'000) + 1, bytes - sent);
      io::Progress progress;
      {
        const DeadlineScope scope(std::chrono::microseconds(own.Below(300)));
        progress = pair.left.WriteCounted(std::span(all).subspan(sent, piece));
      }
      ASSERT_LE(progress.bytes, piece);
      sent += progress.bytes;
      if (progress.status.ok()) continue;
      ASSERT_THAT(progress.status, StatusIs(kDeadlineExceeded));
      Yield();
    }
    EXPECT_OK(pair.left.ShutdownWrite());
  });
  EXPECT_OK(ExpectPattern(pair.right, bytes, 5000));
  EXPECT_OK(writer.Join());
}

BOBBIN_IO_TEST(TlsStreamTest, WhoIsToStopSealsNothing) {
  TlsPair pair = MakeTlsPair();
  {
    const DeadlineScope scope(milliseconds(-1));
    const io::Progress progress = pair.left.WriteCounted(Bytes("never"));
    EXPECT_THAT(progress.status, StatusIs(kDeadlineExceeded));
    EXPECT_EQ(progress.bytes, 0U);
  }
  ASSERT_OK(pair.left.WriteAll(Bytes("but this")));
  EXPECT_EQ(ReadText(pair.right, 8), "but this");
}

// --- Mistakes, and peers that make some

BOBBIN_IO_TEST(TlsStreamTest, ASecondReaderAndASecondWriterAreRefused) {
  TlsPair pair = MakeTlsPair(ClientContext(), ServerContext(), MakeLocalPair(8192));
  WaitProbe reading;
  WaitProbe writing;
  const std::string much(1'000'000, 'x');
  TaskGroup group;
  group.Spawn([&] {
    reading.Attach();
    EXPECT_EQ(ReadText(pair.left, 1), "y");
  });
  group.Spawn([&] {
    writing.Attach();
    EXPECT_OK(pair.left.WriteAll(Bytes(much)));
  });
  reading.AwaitParked();
  writing.AwaitParked();
  std::array<std::byte, 1> byte{};
  const auto read = pair.left.Read(byte);
  ASSERT_THAT(read, StatusIs(kFailedPrecondition));
  EXPECT_EQ(MessageOf(read.status()), "tls read: another thread is in a read of this stream");
  EXPECT_THAT(pair.left.WriteAll(byte), StatusIs(kFailedPrecondition));
  EXPECT_THAT(pair.left.ShutdownWrite(), StatusIs(kFailedPrecondition));
  EXPECT_EQ(ReadText(pair.right, much.size()), much);
  EXPECT_OK(pair.right.WriteAll(Bytes("y")));
  EXPECT_OK(group.Wait());
}

BOBBIN_IO_TEST(TlsStreamTest, WhoSendsSomethingElseIsToldSo) {
  const io::TlsServerContext server = ServerContext();
  const std::string http = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
  const std::string noise(500, '\xa5');
  const std::string too_long = std::string("\x16\x03\x01\xff\xff", 5) + noise;
  for (const std::string& text : {http, noise, too_long}) {
    Pair pair = MakePair();
    EXPECT_OK(pair.left.WriteAll(Bytes(text)));
    const auto accepted = io::TlsStream::Accept(server, std::move(pair.right));
    ASSERT_THAT(accepted, StatusIs(kUnavailable));
    EXPECT_THAT(std::string(MessageOf(accepted.status())), testing::StartsWith("tls handshake: "));
  }
  // In the middle of a connection.
  TlsPair pair = MakeTlsPair();
  EXPECT_OK(pair.left.tcp().WriteAll(Bytes(noise)));
  std::array<std::byte, 1> byte{};
  const auto read = pair.right.Read(byte);
  ASSERT_THAT(read, StatusIs(kUnavailable));
  // For good, and for both directions; the peer has been told.
  EXPECT_EQ(pair.right.Read(byte).status(), read.status());
  EXPECT_THAT(pair.right.WriteAll(byte), StatusIs(kUnavailable));
  EXPECT_THAT(pair.left.Read(byte), StatusIs(kUnavailable));
}

// OpenSSL's errors lie in a queue of the OS thread, where the next connection would find them.
BOBBIN_IO_TEST(TlsStreamTest, FailuresOfOthersAreNotItsOwn) {
  TlsPair pair = MakeTlsPair();
  const io::TlsServerContext server = ServerContext();
  std::atomic<bool> is_done{false};
  TaskGroup group;
  group.Spawn([&] {
    while (!is_done) {
      Pair broken = MakeLocalPair();
      EXPECT_OK(broken.left.WriteAll(Bytes("this is not what a client says")));
      EXPECT_THAT(io::TlsStream::Accept(server, std::move(broken.right)), StatusIs(kUnavailable));
      // What code that cleans nothing up leaves behind.
      ERR_put_error(ERR_LIB_SSL, 0, SSL_R_WRONG_VERSION_NUMBER, __FILE__, __LINE__);
      Yield();
    }
  });
  for (int i = 0; i < Rounds(100); ++i) {
    ASSERT_OK(pair.left.WriteAll(Bytes("ping")));
    ASSERT_EQ(ReadText(pair.right, 4), "ping");
    ASSERT_OK(pair.right.WriteAll(Bytes("pong")));
    ASSERT_EQ(ReadText(pair.left, 4), "pong");
  }
  is_done = true;
  EXPECT_OK(group.Wait());
}

BOBBIN_IO_TEST(TlsStreamTest, AQuietConnectionIsToldFromOneWithSomethingToRead) {
  TlsPair pair = MakeTlsPair();
  // The tickets of the handshake have come, and are read with the first bytes.
  ASSERT_OK(pair.right.WriteAll(Bytes("x")));
  EXPECT_EQ(ReadText(pair.left, 1), "x");
  EXPECT_TRUE(pair.left.IsQuiet());
  ASSERT_OK(pair.right.WriteAll(Bytes("abc")));
  AwaitTrue([&] { return !pair.left.IsQuiet(); });
  EXPECT_EQ(ReadText(pair.left, 1), "a");
  EXPECT_FALSE(pair.left.IsQuiet());
  EXPECT_EQ(ReadText(pair.left, 2), "bc");
  EXPECT_TRUE(pair.left.IsQuiet());
  pair.right.Close();
  AwaitTrue([&] { return !pair.left.IsQuiet(); });
}

TEST(TlsContextTest, WhatCannotBeUsedIsRefusedAtOnce) {
  const io::TlsCertificate good = TestAuthority::Default().Issue();
  const io::TlsCertificate other = TestAuthority::Default().Issue();
  const auto make = [](io::TlsServerOptions options) {
    return std::string(MessageOf(io::TlsServerContext::Make(options).status()));
  };
  EXPECT_EQ(make({}), "tls server: it has no certificate");
  EXPECT_EQ(make({.certificates = {{.chain_pem = "none", .key_pem = good.key_pem}}}),
            "tls certificate: there is no certificate in it");
  EXPECT_THAT(make({.certificates = {{.chain_pem = good.chain_pem, .key_pem = "none"}}}),
              HasSubstr("tls key: "));
  EXPECT_EQ(make({.certificates = {{.chain_pem = good.chain_pem, .key_pem = other.key_pem}}}),
            "tls key: key values mismatch");
  EXPECT_THAT(make({.certificates = {good}, .alpn = {""}}), HasSubstr("1 to 255 bytes"));
  EXPECT_EQ(
      make({.certificates = {good}, .client_certificates = io::ClientCertificates::kRequired}),
      "tls client roots: there is no certificate in it");
  EXPECT_EQ(MessageOf(io::TlsClientContext::Make({.roots_pem = "none"}).status()),
            "tls roots: there is no certificate in it");
}

TEST(TlsContextTest, TheSystemsRootsAreFound) {
  if (!std::ifstream("/etc/ssl/certs/ca-certificates.crt")) GTEST_SKIP() << "there are none";
  EXPECT_OK(io::TlsClientContext::Make());
}

}  // namespace
}  // namespace bobbin::test
