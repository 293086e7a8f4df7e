// SPDX-License-Identifier: Apache-2.0
//
// A shop: a server as one would run it. It takes orders over HTTP, keeps them in SQLite, sends the
// receipts in the background, looks after itself on a timetable, and ends in order when it is told
// to. Its parts are in shop_*; docs/server.md walks through them.

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "fmt/format.h"

#include <bobbin/core/status.h>
#include <bobbin/cron/scheduler.h>
#include <bobbin/db/sqlite.h>
#include <bobbin/io/http/collector.h>
#include <bobbin/io/http/server.h>
#include <bobbin/io/io.h>
#include <bobbin/io/management_server.h>
#include <bobbin/sched/configuration.h>
#include <bobbin/sched/executors.h>
#include <bobbin/sched/json_lines.h>
#include <bobbin/sched/lifecycle.h>
#include <bobbin/sched/log.h>
#include <bobbin/sched/metrics.h>
#include <bobbin/sched/otlp.h>
#include <bobbin/sched/runtime.h>
#include <bobbin/sched/runtime_metrics.h>
#include <bobbin/sched/span.h>

#include "docs/examples/shop_handlers.h"
#include "docs/examples/shop_mail_stub.h"
#include "docs/examples/shop_orders.h"
#include "docs/examples/shop_settings.h"

namespace shop {

namespace {

// Where the log and the spans go. Made before the runtime, and gone after it, so that its last
// words are written, too.
struct Telemetry {
  std::shared_ptr<bobbin::JsonLines> lines;
  std::shared_ptr<bobbin::OtlpSpans> collector;  // Null: spans are lines.
};

// [telemetry]
absl::StatusOr<Telemetry> MakeTelemetry(const Settings& settings) {
  Telemetry telemetry;
  BOBBIN_ASSIGN_OR_RETURN(telemetry.lines,
                          bobbin::JsonLines::Open({.path = settings.telemetry_file}));
  if (!settings.collector.empty()) {
    telemetry.collector = bobbin::OtlpSpans::Make(
        {.send = bobbin::io::http::PostTo({.url = settings.collector}), .service_name = "shop"});
  }
  return telemetry;
}
// [/telemetry]

// A folder that goes with the program, and what lies in it.
class TemporaryFolder {
 public:
  static absl::StatusOr<TemporaryFolder> Make() {
    std::string path = std::filesystem::temp_directory_path() / "bobbin-shop-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) return absl::ErrnoToStatus(errno, "mkdtemp");
    return TemporaryFolder(std::move(path));
  }
  TemporaryFolder(TemporaryFolder&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFolder& operator=(TemporaryFolder&&) = delete;
  ~TemporaryFolder() {
    std::error_code ignored;
    if (!path_.empty()) std::filesystem::remove_all(path_, ignored);
  }
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFolder(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

int Fail(const absl::Status& status) {
  fmt::print(stderr, "shop: {}\n", status.ToString());
  return 1;
}

absl::Status Main(const Settings& settings, const Telemetry& telemetry) {
  // [sources]
  bobbin::Metrics metrics;
  const bobbin::MetricsSource runtime =
      bobbin::MeasureRuntime(metrics, *bobbin::CurrentRuntimeOrNull());
  const bobbin::MetricsSource lines = metrics.AddSource([&](bobbin::MetricsSnapshot& snapshot) {
    bobbin::AddStatistics(snapshot, "json-lines", telemetry.lines->Statistics());
  });
  // [/sources]

  // [management]
  // The first hook of its phase, and so the last one that is called.
  BOBBIN_ASSIGN_OR_RETURN(auto management,
                          bobbin::io::ManagementServer::Start(*bobbin::CurrentRuntimeOrNull(),
                                                              {.listen = settings.management}));
  bobbin::Log(bobbin::LogLevel::kInfo, "management",
              {{"address", management->local_address().ToString()}});
  bobbin::io::ManagementServer::StopLast(std::move(management));
  // [/management]

  std::unique_ptr<MailStub> stub;
  std::string mail_server = settings.mail_server;
  if (mail_server.empty()) {
    BOBBIN_ASSIGN_OR_RETURN(stub, MailStub::Start());
    mail_server = stub->address();
  }

  // [parts]
  BOBBIN_ASSIGN_OR_RETURN(bobbin::db::Sqlite database,
                          bobbin::db::Sqlite::Open({.path = settings.database}));
  Orders orders(database);
  BOBBIN_RETURN_IF_ERROR(orders.MakeTable());
  BOBBIN_ASSIGN_OR_RETURN(bobbin::Executor* const mail,
                          bobbin::CurrentExecutors().Find("mail", bobbin::ThreadKind::kVirtual));
  BOBBIN_ASSIGN_OR_RETURN(const auto handlers,
                          Handlers::Make(orders, *mail, mail_server, stub.get(), metrics));
  // [/parts]

  // [job]
  bobbin::cron::Scheduler scheduler({.metrics = &metrics});
  BOBBIN_RETURN_IF_ERROR(scheduler.Add(
      {.name = "missing-receipts",
       .fixed_delay = settings.check_every,
       .thread = bobbin::ThreadKind::kVirtual},
      [&]() -> absl::Status {
        BOBBIN_ASSIGN_OR_RETURN(const int64_t count, orders.CountWithoutReceipt());
        bobbin::Log(bobbin::LogLevel::kInfo, "orders without a receipt", {{"count", count}});
        return absl::OkStatus();
      }));
  // [/job]

  // [serve]
  BOBBIN_ASSIGN_OR_RETURN(auto listener, bobbin::io::TcpListener::Bind(settings.listen));
  bobbin::io::http::Server server(
      {.name = "shop"}, std::move(listener),
      [&handlers](bobbin::io::http::Request& request) { return (*handlers)(request); });

  // SIGTERM and SIGINT stop the program: first the timetable, then the server, then the tasks.
  bobbin::Lifecycle& life = bobbin::CurrentLifecycle();
  const bobbin::StopHook drain = server.StopWith(life);
  life.StopOnSignals();
  fmt::print("http://{}\n", server.local_address().ToString());
  std::fflush(stdout);
  BOBBIN_RETURN_IF_ERROR(server.Wait());
  return life.Stop();  // The receipts of the last orders are sent meanwhile.
  // [/serve]
}

// [start]
int Start() {
  const absl::StatusOr<bobbin::Configuration> configuration = bobbin::Configuration::Load();
  if (!configuration.ok()) return Fail(configuration.status());
  absl::StatusOr<Settings> settings = ReadSettings(*configuration);
  if (!settings.ok()) return Fail(settings.status());
  const absl::StatusOr<TemporaryFolder> folder = TemporaryFolder::Make();
  if (!folder.ok()) return Fail(folder.status());
  if (settings->database.empty()) settings->database = folder->path() + "/orders.db";
  const absl::StatusOr<Telemetry> telemetry = MakeTelemetry(*settings);
  if (!telemetry.ok()) return Fail(telemetry.status());

  bobbin::SetLogging({.sink = telemetry->lines, .level = settings->log_level});
  const absl::Cleanup no_log = [] { bobbin::SetLogging({}); };
  const std::shared_ptr<bobbin::SpanSink> spans = telemetry->collector;
  const bobbin::Tracing tracing({.sink = spans == nullptr ? telemetry->lines : spans,
                                 .sample_ratio = settings->sample_ratio});
  return bobbin::Run(
      [&] {
        // They are the last to stop, within the budget of all.
        bobbin::Lifecycle& life = bobbin::CurrentLifecycle();
        telemetry->lines->FlushWith(life).Detach();
        if (telemetry->collector != nullptr) telemetry->collector->StopWith(life).Detach();
        return Main(*settings, *telemetry);
      },
      {.poller = bobbin::io::AutoPoller(), .executors = {.configuration = *configuration}});
}
// [/start]

}  // namespace

}  // namespace shop

int main() { return shop::Start(); }
