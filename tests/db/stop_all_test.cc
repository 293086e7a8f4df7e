// SPDX-License-Identifier: Apache-2.0

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/cancel.h>
#include <bobbin/core/event.h>
#include <bobbin/core/status.h>
#include <bobbin/cron/scheduler.h>
#include <bobbin/db/pg_pool.h>
#include <bobbin/db/sqlite.h>
#include <bobbin/io/http/server.h>
#include <bobbin/io/io.h>
#include <bobbin/sched/json_lines.h>
#include <bobbin/sched/lifecycle.h>
#include <bobbin/sched/otlp.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/span.h>
#include <bobbin/sched/spawn.h>
#include <bobbin/sched/tasks.h>

#include "tests/db/pg_test.h"
#include "tests/io/http_test.h"
#include "tests/support/kept_lines.h"

namespace bobbin::test {
namespace {

using db::PgPool;
using db::Sqlite;
using io::http::Request;
using io::http::Response;
using std::chrono::hours;
using std::chrono::milliseconds;
using testing::HasSubstr;

constexpr std::string_view kGet = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";

// A program with one of everything: its request is under way when it is told to stop, and leaves a
// task behind.
TEST(StopAllTest, EverythingEndsInOrderAndNothingIsLost) {
  const KeptLines lines;
  std::atomic<size_t> written = 0;
  const auto json = JsonLines::Open({.write =
                                         [&](std::string_view text) {
                                           written += text.size();
                                           return absl::OkStatus();
                                         },
                                     .interval = hours(1)});
  ASSERT_OK(json.status());
  std::atomic<int> sent = 0;
  const auto spans = OtlpSpans::Make({.send =
                                          [&](std::string_view) {
                                            ++sent;
                                            return absl::OkStatus();
                                          },
                                      .interval = hours(1)});
  const Tracing tracing({.sink = spans});
  std::optional<PgPool> postgres;
  std::optional<Sqlite> sqlite;
  std::atomic<int> tasks = 0;
  std::string answer;

  Runtime runtime({.carriers = 2, .poller = io::AutoPoller(), .shutdown_budget = hours(1)});
  Lifecycle& life = runtime.lifecycle();
  const StopHook json_hook = (*json)->FlushWith(life);
  const StopHook spans_hook = spans->StopWith(life);
  StopHook postgres_hook;
  StopHook sqlite_hook;
  VirtualThread program = runtime.Spawn({.name = "program"}, [&] {
    postgres.emplace(MustOpen({.server = {.conninfo = PostgresService::SharedConninfo()}}));
    postgres_hook = postgres->StopWith(life);
    sqlite = *Sqlite::Open({.path = ":memory:"});
    sqlite_hook = sqlite->StopWith(life);
    cron::Scheduler scheduler;
    ASSERT_OK(scheduler.Add({.name = "job", .fixed_delay = hours(1)}, [] {}));

    Event has_begun;
    Event may_end;
    io::http::Server server({.name = "shop"}, ListenHere(),
                            [&](Request&) -> absl::StatusOr<Response> {
                              has_begun.Set();
                              BOBBIN_RETURN_IF_ERROR(may_end.Wait());
                              BOBBIN_RETURN_IF_ERROR(postgres->Query("select 1").status());
                              BOBBIN_RETURN_IF_ERROR(sqlite->Query("select 1").status());
                              BOBBIN_RETURN_IF_ERROR(Tasks::Virtual([&] {
                                ++tasks;
                                return postgres->Query("select 1").status();
                              }));
                              return Response{.body = "done"};
                            });
    const StopHook server_hook = server.StopWith(life);
    VirtualThread client = Spawn([&] {
      const CancelShield to_the_end;
      answer = Ask(server.local_address(), kGet);
    });
    ASSERT_OK(has_begun.Wait());
    LogRecord line;
    line.text = "a line";
    (*json)->Add(line);
    life.RequestStop();
    AwaitTrue([&] { return !lines.With("stop: phase 2").empty(); });
    may_end.Set();
    ASSERT_OK(life.Stop());
    const CancelShield to_the_end;
    ASSERT_OK(client.Join());
    EXPECT_EQ(tasks, 1);
    // What they have used is still there.
    ASSERT_OK(postgres->Query("select 1").status());
  });
  ASSERT_OK(program.Join());
  EXPECT_THAT(answer, HasSubstr("done"));
  ASSERT_OK(runtime.Shutdown());

  EXPECT_THAT(postgres->Query("select 1"), StatusIs(kUnavailable));
  EXPECT_THAT(sqlite->Query("select 1"), StatusIs(kUnavailable));
  EXPECT_EQ(sent, 1);
  EXPECT_EQ(spans->Statistics().dropped, 0U);
  EXPECT_GT(written, 0U);
  for (const std::string_view phase :
       {"phase 2, scheduler: 1 of 1", "phase 3, servers: 1 of 1", "phase 6, resources: 4 closed"}) {
    EXPECT_EQ(lines.With(phase).size(), 1U) << phase;
  }
}

// Nobody gets more than the whole: who is late is named, and a collector that takes nothing is
// left.
TEST(StopAllTest, WhatDoesNotEndIsLeftWithinTheBudget) {
  const KeptLines lines;
  const auto release = std::make_shared<Event>();  // Its thread is left behind.
  const auto spans = OtlpSpans::Make({.send =
                                          [&](std::string_view) {
                                            const CancelShield deaf;
                                            return release->Wait();
                                          },
                                      .interval = milliseconds(1),
                                      .stop_budget = hours(1)});
  SpanRecord span;
  span.name = "one";
  spans->Add(std::move(span));
  {
    Runtime runtime(
        {.carriers = 2, .poller = io::AutoPoller(), .shutdown_budget = milliseconds(500)});
    Lifecycle& life = runtime.lifecycle();
    const StopHook spans_hook = spans->StopWith(life);
    VirtualThread program = runtime.Spawn({.name = "program"}, [&] {
      cron::Scheduler scheduler;
      Event job_has_begun;
      ASSERT_OK(scheduler.Add(
          {.name = "job", .fixed_delay = hours(1), .thread = ThreadKind::kVirtual}, [&] {
            job_has_begun.Set();
            Event never;
            return never.Wait();
          }));
      Event has_begun;
      io::http::Server server({.name = "shop"}, ListenHere(),
                              [&](Request&) -> absl::StatusOr<Response> {
                                has_begun.Set();
                                Event never;
                                return never.Wait();
                              });
      const StopHook server_hook = server.StopWith(life);
      VirtualThread client = Spawn([&] {
        const CancelShield to_the_end;
        Ask(server.local_address(), kGet);
      });
      ASSERT_OK(has_begun.Wait());
      ASSERT_OK(job_has_begun.Wait());
      life.Stop().IgnoreError();  // Whoever had no CPU may be late here.
      const CancelShield to_the_end;
      ASSERT_OK(client.Join());
    });
    ASSERT_OK(program.Join());
    EXPECT_THAT(runtime.Shutdown(), StatusIs(kDeadlineExceeded));
  }
  EXPECT_EQ(spans->Statistics().dropped, 1U);
  release->Set();
}

}  // namespace
}  // namespace bobbin::test
