// SPDX-License-Identifier: Apache-2.0
//
// PostgreSQL over TLS: with a server that has a certificate of its own making.

#include <chrono>
#include <string>
#include <string_view>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/core/vthread.h>
#include <bobbin/db/pg_pool.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/db/pg_test.h"
#include "tests/db/tcp_proxy.h"

namespace bobbin::db {
namespace {

using std::chrono::milliseconds;
using test::AwaitTrue;
using test::IsOkAndHolds;
using test::MustOpen;
using test::PostgresService;
using test::Rounds;
using test::StatusIs;
using test::TcpProxy;
using testing::HasSubstr;

// Of several values of a keyword libpq takes the last.
PgServer Server(std::string_view more) {
  return {.conninfo = PostgresService::SharedConninfo() + " " + std::string(more)};
}

// Which certificates are believed.
std::string Believing(std::string_view file) {
  return " sslrootcert=" + PostgresService::SharedFile(file);
}

absl::Status Opened(PgServer server) {
  return PgPool::Open({.server = std::move(server)}).status();
}

void ExpectRefused(PgServer server, std::string_view why) {
  const absl::Status status = Opened(std::move(server));
  EXPECT_THAT(status, StatusIs(test::kUnavailable));
  EXPECT_THAT(std::string(MessageOf(status)), HasSubstr(std::string(why)));
}

bool IsEncrypted(PgPool& pool) {
  auto ssl = pool.Query("select ssl from pg_stat_ssl where pid = pg_backend_pid()")->Only<bool>();
  EXPECT_OK(ssl);
  return ssl.ok() && *ssl;
}

// What a client says before the handshake begins.
constexpr size_t kAskForTlsBytes = 8;

BOBBIN_IO_TEST(PgTlsTest, WhatMustBeEncryptedIs) {
  PgPool plain = MustOpen({.server = Server("sslmode=disable")});
  EXPECT_FALSE(IsEncrypted(plain));
  for (const std::string_view mode : {"sslmode=prefer", "sslmode=require"}) {
    PgPool pool = MustOpen({.server = Server(mode)});
    EXPECT_TRUE(IsEncrypted(pool)) << mode;
  }
}

BOBBIN_IO_TEST(PgTlsTest, ACertificateIsForAName) {
  PgPool pool =
      MustOpen({.server = Server("sslmode=verify-full host=localhost" + Believing("server.crt"))});
  EXPECT_TRUE(IsEncrypted(pool));
  ExpectRefused(Server("sslmode=verify-full host=127.0.0.1" + Believing("server.crt")),
                "does not match host name");
  // Who does not ask for the name is content with the certificate.
  EXPECT_OK(Opened(Server("sslmode=verify-ca host=127.0.0.1" + Believing("server.crt"))));
}

BOBBIN_IO_TEST(PgTlsTest, NotEveryCertificateIsBelieved) {
  for (const std::string_view mode : {"verify-ca", "verify-full"}) {
    ExpectRefused(Server("host=localhost sslmode=" + std::string(mode) + Believing("other.crt")),
                  "certificate verify failed");
  }
}

// The one carrier runs this thread while the other one is in the middle of the handshake.
BOBBIN_IO_TEST(PgTlsTest, AHandshakeThatStallsBlocksNobodyAndCanBeEnded) {
  for (const size_t behind : {kAskForTlsBytes, kAskForTlsBytes + 1}) {
    TcpProxy proxy(test::PortOf(PostgresService::SharedConninfo()));
    proxy.StallBehind(behind);
    VirtualThread opener = Spawn(
        [&] { return Opened(Server("sslmode=require port=" + std::to_string(proxy.port()))); });
    AwaitTrue([&] { return proxy.is_stalled(); });
    opener.Cancel();
    EXPECT_THAT(opener.Join(), StatusIs(test::kCancelled));
  }
}

BOBBIN_IO_TEST(PgTlsTest, ADeadlineCoversTheHandshake) {
  TcpProxy proxy(test::PortOf(PostgresService::SharedConninfo()));
  proxy.StallBehind(kAskForTlsBytes + 1);
  const std::string by_proxy = "sslmode=require port=" + std::to_string(proxy.port());
  {
    const DeadlineScope soon(milliseconds(20));
    EXPECT_THAT(Opened(Server(by_proxy)), StatusIs(test::kDeadlineExceeded));
  }
  // The server's own patience.
  PgServer server = Server(by_proxy);
  server.connect_wait_max = milliseconds(20);
  ExpectRefused(std::move(server), "no answer within 20 ms");
}

BOBBIN_IO_TEST(PgTlsTest, WhatIsLargeBothWaysComesWhole) {
  PgPool pool = MustOpen({.server = Server("sslmode=require"), .connections_max = 2});
  const std::string text(4 << 20, 'x');
  TaskGroup group;
  for (int i = 0; i < 4; ++i) {
    group.Spawn([&]() -> absl::Status {
      BOBBIN_ASSIGN_OR_RETURN(const Rows rows, pool.Query("select $1::text, 7", text));
      EXPECT_THAT(rows[0].Get<std::string>(0), IsOkAndHolds(text));
      EXPECT_THAT(rows[0].Get<int>(1), IsOkAndHolds(7));
      return absl::OkStatus();
    });
  }
  EXPECT_OK(group.Wait());
}

BOBBIN_IO_TEST(PgTlsTest, AStopReachesTheServer) {
  PgPool pool = MustOpen({.server = Server("sslmode=require"), .connections_max = 1});
  const auto process = pool.Query("select pg_backend_pid()")->Only<int>();
  ASSERT_OK(process);
  for (int round = 0; round < Rounds(20); ++round) {
    {
      const DeadlineScope soon(milliseconds(1));
      EXPECT_THAT(pool.Query("select pg_sleep(60)").status(), StatusIs(test::kDeadlineExceeded));
    }
    EXPECT_THAT(pool.Query("select 42")->Only<int>(), IsOkAndHolds(42));
  }
}

}  // namespace
}  // namespace bobbin::db
