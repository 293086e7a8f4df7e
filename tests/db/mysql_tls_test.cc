// SPDX-License-Identifier: Apache-2.0
//
// MySQL over TLS: with a server that has a certificate of its own making.

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/deadline.h>
#include <bobbin/core/status.h>
#include <bobbin/core/vthread.h>
#include <bobbin/db/mysql_pool.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/task_group.h>

#include "tests/db/mysql_test.h"
#include "tests/db/tcp_proxy.h"

namespace bobbin::db {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::AwaitTrue;
using test::IsOkAndHolds;
using test::MustOpen;
using test::MySqlService;
using test::Rounds;
using test::SharedBy;
using test::StatusIs;
using test::TcpProxy;
using testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

MySqlServer Server(MySqlTls tls, std::string_view ca_file = "", std::string_view host = "") {
  MySqlServer server = MySqlService::Shared();
  server.tls = tls;
  if (!ca_file.empty()) server.ca_file = MySqlService::SharedFile(ca_file);
  if (!host.empty()) server.host = host;
  return server;
}

absl::Status Opened(MySqlServer server) {
  return MySqlPool::Open({.server = std::move(server)}).status();
}

bool IsEncrypted(MySqlPool& pool) {
  const absl::StatusOr<Rows> rows = pool.Query("show session status like 'Ssl_cipher'");
  EXPECT_OK(rows);
  return rows.ok() && !(*rows)[0].Get<std::string>(1)->empty();
}

// What a client says before the handshake begins.
constexpr size_t kAskForTlsBytes = 36;

MySqlServer ByProxy(const TcpProxy& proxy) {
  MySqlServer server = SharedBy(proxy.port());
  server.tls = MySqlTls::kRequired;
  return server;
}

BOBBIN_IO_TEST(MySqlTlsTest, WhatMustBeEncryptedIs) {
  MySqlPool plain = MustOpen({.server = Server(MySqlTls::kDisabled)});
  EXPECT_FALSE(IsEncrypted(plain));
  MySqlPool pool = MustOpen({.server = Server(MySqlTls::kRequired)});
  EXPECT_TRUE(IsEncrypted(pool));
}

BOBBIN_IO_TEST(MySqlTlsTest, ACertificateIsForAName) {
  MySqlPool pool =
      MustOpen({.server = Server(MySqlTls::kVerifyIdentity, "server.crt", "localhost")});
  EXPECT_TRUE(IsEncrypted(pool));
  EXPECT_THAT(Opened(Server(MySqlTls::kVerifyIdentity, "server.crt", "127.0.0.1")),
              StatusIs(test::kUnavailable));
  // Who does not ask for the name is content with the certificate.
  EXPECT_OK(Opened(Server(MySqlTls::kVerifyCa, "server.crt", "127.0.0.1")));
}

BOBBIN_IO_TEST(MySqlTlsTest, NotEveryCertificateIsBelieved) {
  for (const MySqlTls tls : {MySqlTls::kVerifyCa, MySqlTls::kVerifyIdentity}) {
    const absl::Status status = Opened(Server(tls, "other.crt", "localhost"));
    EXPECT_THAT(status, StatusIs(test::kUnavailable));
    EXPECT_THAT(std::string(MessageOf(status)), HasSubstr("certificate"));
  }
}

BOBBIN_IO_TEST(MySqlTlsTest, WithoutAnyoneToBelieveNothingIsVerified) {
  for (const MySqlTls tls : {MySqlTls::kVerifyCa, MySqlTls::kVerifyIdentity}) {
    EXPECT_THAT(Opened(Server(tls)), StatusIs(kInvalidArgument));
    EXPECT_FALSE(Opened(Server(tls, "no such file")).ok());
  }
  MySqlServer local = Server(MySqlTls::kVerifyIdentity, "server.crt");
  local.socket = "/run/none";
  EXPECT_THAT(Opened(std::move(local)), StatusIs(kInvalidArgument));
}

// The one carrier runs this thread while the other one is in the middle of the handshake.
BOBBIN_IO_TEST(MySqlTlsTest, AHandshakeThatStallsBlocksNobodyAndCanBeEnded) {
  for (const size_t behind : {kAskForTlsBytes, kAskForTlsBytes + 1}) {
    TcpProxy proxy(MySqlService::Shared().port);
    proxy.StallBehind(behind);
    VirtualThread opener = Spawn([&] { return Opened(ByProxy(proxy)); });
    AwaitTrue([&] { return proxy.is_stalled(); });
    opener.Cancel();
    EXPECT_THAT(opener.Join(), StatusIs(test::kCancelled));
  }
}

BOBBIN_IO_TEST(MySqlTlsTest, ADeadlineCoversTheHandshake) {
  TcpProxy proxy(MySqlService::Shared().port);
  proxy.StallBehind(kAskForTlsBytes + 1);
  {
    const DeadlineScope soon(milliseconds(20));
    EXPECT_THAT(Opened(ByProxy(proxy)), StatusIs(test::kDeadlineExceeded));
  }
  // The server's own patience.
  MySqlServer server = ByProxy(proxy);
  server.connect_wait_max = milliseconds(20);
  const absl::Status status = Opened(std::move(server));
  EXPECT_THAT(status, StatusIs(test::kUnavailable));
  EXPECT_THAT(std::string(MessageOf(status)), HasSubstr("no answer within 20 ms"));
}

BOBBIN_IO_TEST(MySqlTlsTest, WhatIsLargeBothWaysComesWhole) {
  MySqlPool pool = MustOpen({.server = Server(MySqlTls::kRequired), .connections_max = 2});
  const std::string text(4 << 20, 'x');
  TaskGroup group;
  for (int i = 0; i < 4; ++i) {
    group.Spawn({.migrates = true}, [&]() -> absl::Status {
      BOBBIN_ASSIGN_OR_RETURN(const Rows rows, pool.Query("select $1, 7", text));
      EXPECT_THAT(rows[0].Get<std::string>(0), IsOkAndHolds(text));
      EXPECT_THAT(rows[0].Get<int>(1), IsOkAndHolds(7));
      return absl::OkStatus();
    });
  }
  EXPECT_OK(group.Wait());
}

// A server that does not answer keeps nobody's carrier: one that was kept could not even end the
// query when its time is over.
BOBBIN_IO_TEST(MySqlTlsTest, AQueryParks) {
  TcpProxy proxy(MySqlService::Shared().port);
  {
    MySqlServer server = ByProxy(proxy);
    server.cancel_wait_max = milliseconds(10);
    MySqlPool pool = MustOpen({.server = std::move(server), .connections_max = 1});
    proxy.Stall();
    for (const std::string& sql :
         {std::string("select 1"), std::string(16 << 20, ' ') + "select 1"}) {
      const DeadlineScope soon(milliseconds(50));
      EXPECT_THAT(pool.Query(UncheckedSql(sql)).status(), StatusIs(test::kDeadlineExceeded));
    }
    proxy.Resume();
    EXPECT_THAT(pool.Query("select 42")->Only<int>(), IsOkAndHolds(42));
  }
}

BOBBIN_IO_TEST(MySqlTlsTest, AStopReachesTheServer) {
  MySqlServer server = Server(MySqlTls::kVerifyIdentity, "server.crt", "localhost");
  server.cancel_wait_max = seconds(20);
  MySqlPool pool = MustOpen({.server = std::move(server), .connections_max = 1});
  const auto id = pool.Query("select connection_id()")->Only<int64_t>();
  ASSERT_OK(id);
  for (int round = 0; round < Rounds(20); ++round) {
    {
      const DeadlineScope soon(milliseconds(1));
      EXPECT_THAT(pool.Query("select sleep(60)").status(), StatusIs(test::kDeadlineExceeded));
    }
    EXPECT_THAT(pool.Query("select connection_id()")->Only<int64_t>(), IsOkAndHolds(*id));
  }
}

BOBBIN_IO_TEST(MySqlTlsTest, AServerThatGoesAwayEndsNoProcess) {
  TcpProxy proxy(MySqlService::Shared().port);
  {
    MySqlPool pool = MustOpen({.server = ByProxy(proxy), .connections_max = 1});
    EXPECT_THAT(pool.Transact([&](MySqlTransaction& tx) -> absl::Status {
      BOBBIN_RETURN_IF_ERROR(tx.Query("select 1").status());
      proxy.Cut();
      return tx.Query(UncheckedSql("select " + std::string(1 << 20, ' ') + "1")).status();
    }),
                StatusIs(test::kUnavailable));
    EXPECT_THAT(pool.Query("select 42")->Only<int>(), IsOkAndHolds(42));
  }
}

}  // namespace
}  // namespace bobbin::db
