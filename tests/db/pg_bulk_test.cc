// SPDX-License-Identifier: Apache-2.0
//
// Pipelines, streams, copies and notifications.

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/deadline.h>
#include <bobbin/core/vthread.h>
#include <bobbin/db/pg_copy.h>
#include <bobbin/db/pg_listener.h>
#include <bobbin/db/pg_pipeline.h>
#include <bobbin/db/pg_pool.h>
#include <bobbin/db/pg_stream.h>
#include <bobbin/sched/spawn.h>

#include "tests/db/pg_test.h"
#include "tests/db/tcp_proxy.h"

namespace bobbin::db {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using test::AwaitTrue;
using test::IsOkAndHolds;
using test::MustOpen;
using test::PostgresService;
using test::Schema;
using test::StatusIs;
using test::TcpProxy;
using testing::HasSubstr;

constexpr auto kInvalidArgument = absl::StatusCode::kInvalidArgument;

// One connection, so that whatever is left on it meets the next statement; and patience for a
// machine that is slow.
PgPool OpenOne() {
  return MustOpen(
      {.server = {.conninfo = PostgresService::SharedConninfo(), .cancel_wait_max = seconds(20)},
       .connections_max = 1});
}

void ExpectClean(PgPool& pool) {
  EXPECT_THAT(pool.Query("select 42")->Only<int>(), IsOkAndHolds(42));
  EXPECT_EQ(pool.Statistics().opened, 1U);
}

int CountRows(PgPool& pool) { return pool.Query("select count(*) from t")->Only<int>().value(); }

// --- Pipelines.

BOBBIN_IO_TEST(PgPipelineTest, EachStatementHasItsAnswer) {
  Schema schema;
  PgPool pool = schema.OpenWithTable(1);
  for (int round = 0; round < 3; ++round) {
    PgPipeline pipeline;
    pipeline.Add("delete from t");
    for (int i = 0; i < 100; ++i) pipeline.Add("insert into t values ($1) returning n * 2", i);
    pipeline.Add("select count(*), $1::text, $2::bytea from t", std::string("text"),
                 std::vector<std::byte>(3));
    const auto answers = pool.RunPipeline(pipeline);
    ASSERT_OK(answers);
    ASSERT_EQ(answers->size(), 102U);
    EXPECT_EQ((*answers)[0].changes, round == 0 ? 0 : 100);
    EXPECT_THAT((*answers)[8].rows.Only<int>(), IsOkAndHolds(14));
    EXPECT_EQ((*answers)[8].changes, 1);
    EXPECT_THAT((*answers)[101].rows[0].Get<int>(0), IsOkAndHolds(100));
  }
  EXPECT_OK(pool.RunPipeline(PgPipeline()));
  EXPECT_EQ(pool.Statistics().opened, 1U);
}

BOBBIN_IO_TEST(PgPipelineTest, WhereOneFailsNothingHasHappened) {
  Schema schema;
  PgPool pool = schema.OpenWithTable(1);
  for (int round = 0; round < 3; ++round) {
    PgPipeline pipeline;
    pipeline.Add("insert into t values (1)");
    pipeline.Add("insert into t values (1 / ($1 - 1))", 1);
    pipeline.Add("insert into t values (3)");
    const absl::Status status = pool.RunPipeline(pipeline).status();
    EXPECT_THAT(status, StatusIs(kInvalidArgument));
    EXPECT_EQ(PgErrorOf(status)->sqlstate, "22012");
    EXPECT_THAT(std::string(status.message()), HasSubstr("(1 / ($1 - 1))"));
    EXPECT_EQ(CountRows(pool), 0);
  }
  PgPipeline wrong;
  wrong.Add("select $1::text", std::string_view("a\0b", 3));
  EXPECT_THAT(pool.RunPipeline(wrong).status(), StatusIs(kInvalidArgument));
  EXPECT_EQ(pool.Statistics().discarded, 0U);
  PgPipeline copy;
  copy.Add("copy t from stdin");
  EXPECT_FALSE(pool.RunPipeline(copy).ok());
  EXPECT_EQ(CountRows(pool), 0);
}

BOBBIN_IO_TEST(PgPipelineTest, InATransactionItIsAPartOfIt) {
  Schema schema;
  PgPool pool = schema.OpenWithTable(1);
  PgPipeline pipeline;
  pipeline.Add("insert into t values (1)");
  pipeline.Add("insert into t values (2)");
  EXPECT_THAT(pool.Transact([&](PgTransaction& tx) -> absl::Status {
    BOBBIN_RETURN_IF_ERROR(tx.RunPipeline(pipeline).status());
    EXPECT_THAT(tx.Query("select count(*) from t")->Only<int>(), IsOkAndHolds(2));
    return absl::DataLossError("no");
  }),
              StatusIs(absl::StatusCode::kDataLoss));
  EXPECT_EQ(CountRows(pool), 0);
  EXPECT_OK(pool.Transact([&](PgTransaction& tx) { return tx.RunPipeline(pipeline).status(); }));
  EXPECT_EQ(CountRows(pool), 2);
}

BOBBIN_IO_TEST(PgPipelineTest, WhatIsLargeBothWaysDoesNotGetStuck) {
  PgPool pool = OpenOne();
  PgPipeline pipeline;
  const std::string large(64 << 10, 'x');
  for (int i = 0; i < 100; ++i) pipeline.Add("select $1::text", large);
  const auto answers = pool.RunPipeline(pipeline);
  ASSERT_OK(answers);
  EXPECT_EQ(answers->back().rows[0].Get<std::string_view>(0)->size(), large.size());
  ExpectClean(pool);
}

BOBBIN_IO_TEST(PgPipelineTest, ADeadlineEndsIt) {
  PgPool pool = OpenOne();
  PgPipeline pipeline;
  for (int i = 0; i < 3; ++i) pipeline.Add("select pg_sleep(60)");
  {
    const DeadlineScope soon(milliseconds(5));
    EXPECT_THAT(pool.RunPipeline(pipeline).status(), StatusIs(test::kDeadlineExceeded));
  }
  ExpectClean(pool);
}

// --- Streams.

BOBBIN_IO_TEST(PgStreamTest, AllRowsComeInOrder) {
  PgPool pool = OpenOne();
  auto stream = pool.Stream("select i from generate_series(1, $1) i", 20'000);
  ASSERT_OK(stream);
  int64_t next = 1;
  while (true) {
    auto rows = stream->Next();
    ASSERT_OK(rows);
    if (rows->empty()) break;
    for (auto [i] : rows->As<int64_t>()) ASSERT_EQ(i, next++);
  }
  EXPECT_EQ(next, 20'001);
  EXPECT_TRUE(stream->Next()->empty());
  ExpectClean(pool);  // The stream is there, but has given back the connection.
}

BOBBIN_IO_TEST(PgStreamTest, OneThatIsLeftEarlyEndsOnTheServer) {
  PgPool pool = OpenOne();
  {
    auto stream = pool.Stream("select generate_series(1, 1000000000)");
    ASSERT_OK(stream);
    ASSERT_OK(stream->Next());
  }
  ExpectClean(pool);
  {
    auto stream = pool.Stream("select pg_sleep(60)");
    ASSERT_OK(stream);
    const DeadlineScope soon(milliseconds(5));
    EXPECT_THAT(stream->Next().status(), StatusIs(test::kDeadlineExceeded));
  }
  ExpectClean(pool);
}

BOBBIN_IO_TEST(PgStreamTest, AnErrorAfterTheFirstRowsIsTold) {
  PgPool pool = OpenOne();
  auto stream = pool.Stream("select 1 / (5000 - i) from generate_series(1, 5000) i");
  ASSERT_OK(stream);
  absl::StatusOr<Rows> rows = stream->Next();
  ASSERT_OK(rows);
  while (rows.ok() && !rows->empty()) rows = stream->Next();
  EXPECT_THAT(rows.status(), StatusIs(kInvalidArgument));
  EXPECT_THAT(pool.Stream("select 1 frm t")->Next().status(), StatusIs(kInvalidArgument));
  ExpectClean(pool);
}

BOBBIN_IO_TEST(PgStreamTest, InATransactionNothingElseRunsMeanwhile) {
  PgPool pool = OpenOne();
  EXPECT_OK(pool.Transact([&](PgTransaction& tx) -> absl::Status {
    {
      auto stream = tx.Stream("select i from generate_series(1, 100000) i");
      EXPECT_OK(stream);
      EXPECT_THAT(tx.Query("select 1").status(), StatusIs(test::kFailedPrecondition));
      EXPECT_OK(stream->Next());
      BOBBIN_RETURN_IF_ERROR(tx.Query("select 1").status().code() == test::kFailedPrecondition
                                 ? absl::OkStatus()
                                 : absl::InternalError("it ran"));
      while (true) {
        BOBBIN_ASSIGN_OR_RETURN(const Rows rows, stream->Next());
        if (rows.empty()) break;
      }
    }
    return tx.Query("select 1").status();
  }));
  ExpectClean(pool);
}

// --- COPY.

BOBBIN_IO_TEST(PgCopyTest, RowsGoInAndComeOut) {
  Schema schema;
  PgPool pool = schema.Open(1);
  ASSERT_OK(pool.ExecuteScript("create table c(n int, t text, b bytea)"));
  const std::string odd = "tab\t line\n return\r back\\ \\N";
  auto in = pool.CopyIn("copy c from stdin");
  ASSERT_OK(in);
  ASSERT_OK(in->WriteRow(1, odd, std::vector<std::byte>{std::byte{0}, std::byte{255}}));
  ASSERT_OK(in->WriteRow(2, nullptr, nullptr));
  ASSERT_OK(in->Write("3\tin"));
  ASSERT_OK(in->Write(" pieces\t\\N\n"));
  EXPECT_THAT(in->Finish(), IsOkAndHolds(3));
  EXPECT_THAT(in->Finish().status(), StatusIs(test::kFailedPrecondition));
  EXPECT_THAT(in->WriteRow(4, "", nullptr), StatusIs(test::kFailedPrecondition));

  EXPECT_THAT(pool.Query("select t from c where n = 1")->Only<std::string>(), IsOkAndHolds(odd));
  auto out = pool.CopyOut("copy (select n, t from c where n > 1 order by n) to stdout");
  ASSERT_OK(out);
  EXPECT_THAT(out->Read(), IsOkAndHolds("2\t\\N\n"));
  EXPECT_THAT(out->Read(), IsOkAndHolds("3\tin pieces\n"));
  EXPECT_THAT(out->Read(), IsOkAndHolds(""));
  EXPECT_THAT(out->Read(), IsOkAndHolds(""));
  ExpectClean(pool);
}

BOBBIN_IO_TEST(PgCopyTest, WhatIsNotFinishedHasNotHappened) {
  Schema schema;
  PgPool pool = schema.OpenWithTable(1);
  {
    auto in = pool.CopyIn("copy t from stdin");
    ASSERT_OK(in);
    for (int i = 0; i < 1000; ++i) ASSERT_OK(in->WriteRow(i));
  }
  EXPECT_EQ(CountRows(pool), 0);
  {
    auto in = pool.CopyIn("copy t from stdin");
    ASSERT_OK(in);
    ASSERT_OK(in->Write("no number\n"));
    const absl::Status status = in->Finish().status();
    EXPECT_THAT(status, StatusIs(kInvalidArgument));
    EXPECT_THAT(PgErrorOf(status)->context, HasSubstr("COPY t, line 1"));
  }
  {
    auto out = pool.CopyOut("copy (select generate_series(1, 1000000000)) to stdout");
    ASSERT_OK(out);
    EXPECT_THAT(out->Read(), IsOkAndHolds("1\n"));
  }
  EXPECT_THAT(pool.CopyIn("copy nothing from stdin").status(),
              StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(pool.CopyIn("select 1").status(), StatusIs(kInvalidArgument));
  ExpectClean(pool);
  EXPECT_THAT(pool.CopyIn("copy t to stdout").status(), StatusIs(kInvalidArgument));
  EXPECT_THAT(pool.Stream("copy t to stdout")->Next().status(), StatusIs(kInvalidArgument));
  EXPECT_EQ(CountRows(pool), 0);
}

BOBBIN_IO_TEST(PgCopyTest, AServerThatDoesNotReadIsWaitedForUntilTheDeadline) {
  TcpProxy proxy(test::PortOf(PostgresService::SharedConninfo()));
  Schema schema;
  {
    PgPool direct = schema.OpenWithTable(1);
    PgPool pool = MustOpen({.server = {.conninfo = schema.ConninfoBy(proxy.port()),
                                       .cancel_wait_max = milliseconds(10)},
                            .connections_max = 1});
    absl::StatusOr<PgCopyIn> in = pool.CopyIn("copy t from stdin");
    ASSERT_OK(in);
    proxy.Stall();
    const DeadlineScope soon(milliseconds(20));
    const std::string many(1 << 20, '7');
    absl::Status status;
    for (int i = 0; i < 100 && status.ok(); ++i) status = in->Write(many);
    EXPECT_THAT(status, StatusIs(test::kDeadlineExceeded));
    proxy.Resume();
  }
}

BOBBIN_IO_TEST(PgCopyTest, InATransactionItIsAPartOfIt) {
  Schema schema;
  PgPool pool = schema.OpenWithTable(1);
  EXPECT_OK(pool.Transact([&](PgTransaction& tx) -> absl::Status {
    {
      BOBBIN_ASSIGN_OR_RETURN(PgCopyIn in, tx.CopyIn("copy t from stdin"));
      BOBBIN_RETURN_IF_ERROR(in.WriteRow(1));
      BOBBIN_RETURN_IF_ERROR(in.Finish().status());
    }
    BOBBIN_ASSIGN_OR_RETURN(PgCopyOut out, tx.CopyOut("copy t to stdout"));
    EXPECT_THAT(out.Read(), IsOkAndHolds("1\n"));
    return out.Read().status();
  }));
  EXPECT_EQ(CountRows(pool), 1);
}

// --- Notifications.

BOBBIN_IO_TEST(PgListenerTest, WhatIsNotifiedComesInOrder) {
  PgPool pool = OpenOne();
  const std::string channel = "odd \"name\" " + std::to_string(getpid());
  auto listener =
      PgListener::Open({.conninfo = PostgresService::SharedConninfo()}, {"other", channel});
  ASSERT_OK(listener);
  EXPECT_EQ(listener->Next()->kind, PgEvent::kConnected);
  {
    const DeadlineScope soon(milliseconds(1));
    EXPECT_THAT(listener->Next().status(), StatusIs(test::kDeadlineExceeded));
  }
  for (int i = 0; i < 5; ++i) {
    ASSERT_OK(pool.Query("select pg_notify($1, $2)", channel, std::to_string(i)));
  }
  for (int i = 0; i < 5; ++i) {
    const auto event = listener->Next();
    ASSERT_OK(event);
    EXPECT_EQ(event->kind, PgEvent::kNotified);
    EXPECT_EQ(event->channel, channel);
    EXPECT_EQ(event->payload, std::to_string(i));
    EXPECT_GT(event->process, 0);
  }
}

BOBBIN_IO_TEST(PgListenerTest, ALostConnectionIsMadeAgainAndToldOf) {
  TcpProxy proxy(test::PortOf(PostgresService::SharedConninfo()));
  {
    PgPool pool = OpenOne();
    const std::string channel = "lost" + std::to_string(getpid());
    auto listener = PgListener::Open(
        {.conninfo = test::WithPort(PostgresService::SharedConninfo(), proxy.port())}, {channel});
    ASSERT_OK(listener);
    EXPECT_EQ(listener->Next()->kind, PgEvent::kConnected);
    for (int round = 0; round < 3; ++round) {
      proxy.Cut();
      EXPECT_EQ(listener->Next()->kind, PgEvent::kConnected);
      ASSERT_OK(pool.Query("select pg_notify($1, '')", channel));
      EXPECT_EQ(listener->Next()->kind, PgEvent::kNotified);
    }
  }
}

}  // namespace
}  // namespace bobbin::db
