// SPDX-License-Identifier: Apache-2.0
//
// PgConnection: a connection to a PostgreSQL server, and what has been said on it so far.
//
// A statement is an exchange: send, then read results until the server is ready for the next.
// States, between exchanges:
//
//   idle      ready, outside a transaction: may go to anybody
//   inside    ready, in a transaction: its owner's
//   broken    lost, or left in the middle of something: of no use but to be closed
//
// A caller that is to stop during an exchange does not leave: it has the server cancel the
// statement, and reads on, shielded, until the server is ready. So whoever comes next finds nothing
// of it. What has been read by then wins: a statement that was done all the same is reported as
// done. The server passes the request on before it closes the connection that it came by, and the
// process that is told so while it waits for the next statement ignores it: so once both that end
// and the readiness have been seen, no later statement can be hit. Where one of them does not come
// in time, or a statement was only half sent, the connection is broken.
//
//   Called from   virtual, platform and foreign threads; one at a time.
//   Suspends      whatever talks to the server.
//   Cancellation  CANCELLED or DEADLINE_EXCEEDED, after a time of PgServer::cancel_wait_max at
//                 most.
//   Errors        as pg_error.h; UNAVAILABLE: the connection is lost.
//   Cost          a statement: a send, a wait, a receive; two allocations in libpq for the result.

#ifndef BOBBIN_DB_SRC_PG_CONNECTION_H_
#define BOBBIN_DB_SRC_PG_CONNECTION_H_

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/clock.h>
#include <bobbin/db/pg_listener.h>
#include <bobbin/db/pg_pipeline.h>
#include <bobbin/db/pg_server.h>
#include <bobbin/db/row.h>

#include "db/src/connection_pool.h"
#include "db/src/limits.h"
#include "db/src/pg_connector.h"
#include "db/src/pg_params.h"
#include "db/src/pg_result.h"

namespace bobbin::db::internal {

// What of it is wanted.
enum class PgWanted : uint8_t { kRows, kChanges };

// Where the connection is between two exchanges.
enum class PgPhase : uint8_t { kIdle, kInTransaction, kInFailedTransaction, kBroken };

class PgExchange;

class PgConnection final : public PooledConnection {
  // For make_unique: only Open has one.
  class Passkey {
    friend class PgConnection;
    Passkey() = default;
  };

 public:
  PgConnection(Passkey, const PgServer& server, PgLink link);
  // `server` must outlive it.
  static absl::StatusOr<std::unique_ptr<PgConnection>> Open(const PgServer& server);
  PgConnection(const PgConnection&) = delete;
  PgConnection& operator=(const PgConnection&) = delete;
  // Tells the server, without waiting for it.
  ~PgConnection() override;

  PgPhase phase() const;
  int process() const { return PQbackendPID(handle_.get()); }
  bool IsClean() const override { return phase() == PgPhase::kIdle; }
  // Reads what the server may have said meanwhile.
  bool IsAlive() override;

  // FAILED_PRECONDITION while a stream or a copy uses it; or what a wait would answer.
  absl::Status CheckFree() const;
  // A stream or a copy uses it from call to call.
  void set_is_lent(bool is_lent) { is_lent_ = is_lent; }

  // Runs one statement to its end.
  absl::StatusOr<PgAnswer> Run(std::string_view sql, std::span<const Param> params,
                               PgWanted wanted);
  // Runs statements that are sent together; outside a transaction as one.
  absl::StatusOr<std::vector<PgAnswer>> RunPipeline(const PgPipeline& pipeline);
  // Begins a statement whose rows are read one by one.
  absl::Status BeginStream(PgExchange& exchange, std::string_view sql,
                           std::span<const Param> params);
  // Begins a COPY of the given kind.
  absl::Status BeginCopy(PgExchange& exchange, std::string_view sql, ExecStatusType kind);
  absl::Status Listen(std::span<const std::string> channels);
  absl::StatusOr<PgNotification> AwaitNotification();
  // Runs any number of statements without values; outside a transaction as one.
  absl::Status RunScript(std::string_view script);
  // Ends the transaction, if there is one, whatever the caller is asked to: within
  // PgServer::finish_wait_max, or it is broken.
  void RollBack() noexcept;
  // The same for a commit. `is_unknown`, when it fails: whether it may have taken effect.
  absl::Status Commit(bool& is_unknown);

 private:
  friend class PgExchange;

  // A prepared text. The list is in the order of use, the last used first.
  struct KeptStatement {
    std::string key;   // The text, and where blobs are.
    std::string name;  // Empty: seen once, and not prepared.
  };
  using KeptStatements = std::list<KeptStatement>;

  // What was sent of a pipeline: a statement, or what prepares one.
  struct Sent {
    size_t statement = 0;
    KeptStatement* prepares = nullptr;
    std::string name = {};  // Of what it prepares.
  };

  static void OnNotice(void* connection, const PGresult* result);
  absl::Status Configure();
  absl::Status SendPipeline(PgExchange& exchange, const PgPipeline& pipeline,
                            std::vector<Sent>& sent);
  // What is kept of a text, or null.
  KeptStatement* Find(std::string_view sql, const PgParams& params);
  // The name of the prepared statement for a text, kept until Forget; empty for one that comes for
  // the first time.
  absl::StatusOr<const char*> Prepare(std::string_view sql, const PgParams& params);
  absl::Status MakeRoom(size_t count);
  void Remember(std::string_view sql, const PgParams& params);
  std::string NewName();
  void Forget(std::string_view sql, const PgParams& params);
  static std::string KeyOf(std::string_view sql, const PgParams& params);
  // Runs a text of our own that gives no rows.
  absl::Status RunOwn(const std::string& sql);
  absl::StatusOr<PgAnswer> RunOnce(std::string_view sql, const PgParams& params, PgWanted wanted,
                                   const char* name);
  static void TakeAnswer(const PGresult& result, PgWanted wanted, PgAnswer& answer);
  // What libpq's functions return; `name` of a prepared statement, or "".
  int SendStatement(std::string_view sql, int count, const PgParams::Lists& lists,
                    const char* name);

  const PgServer& server_;
  PgHandle handle_;
  const std::optional<int32_t> cancel_key_;
  bool is_broken_ = false;
  bool is_lent_ = false;
  KeptStatements statements_;
  absl::flat_hash_map<std::string_view, KeptStatements::iterator> statement_of_;
  uint64_t names_ = 0;
};

// One exchange, from the sending to the server's readiness.
class PgExchange {
 public:
  // `operation` is for messages.
  PgExchange(PgConnection& connection, std::string_view sql) : connection_(connection), sql_(sql) {}
  PgExchange(const PgExchange&) = delete;
  PgExchange& operator=(const PgExchange&) = delete;

  // After a function of libpq's that sends, with what it returned; Queue leaves it to libpq when.
  absl::Status Queue(int is_sent);
  absl::Status Send(int is_sent);
  // Sends what libpq has kept back, and reads meanwhile: the server may have to say something
  // before it takes more.
  absl::Status Flush();
  // The next result; null when the server is ready. An error: there will be none.
  absl::StatusOr<PgResult> Next();
  // Whether a result is there already.
  bool HasNext() const;
  // For a COPY. After an error of the first two Next tells what has happened.
  absl::Status SendCopyData(std::string_view data);
  absl::Status SendCopyEnd();
  // For a COPY where none can be: leaves the connection broken.
  absl::Status RefuseCopy();
  // The next row of data; empty at the end.
  absl::StatusOr<std::string> NextCopyData();
  // For one that is not wanted any more: ends it, and reads to the end.
  void Drop() noexcept;
  // Reads to the end, and returns the first error among what is left.
  absl::Status Finish();
  // The status of a result: OK, or what has failed.
  absl::Status StatusOf(const PGresult& result) const;
  // For a caller that wants no more: has the server end the statement.
  void Abandon();
  std::string Operation() const;
  // Which of several statements the results are of.
  void set_sql(std::string_view sql) { sql_ = sql; }
  void BeginCopyIn() { is_copy_in_ = true; }

 private:
  // Waits for the socket; once the caller is to stop, no longer than cancel_wait_max.
  absl::Status Await(absl::FunctionRef<absl::Status()> wait);
  absl::Status AwaitEnd(absl::FunctionRef<absl::Status()> wait);
  void AskToEnd();
  // Leaves the connection broken.
  absl::Status Break(absl::Status why);

  PgConnection& connection_;
  std::string_view sql_;
  bool is_sent_ = false;
  bool is_copy_in_ = false;
  size_t unsent_bytes_ = 0;  // Of a copy, at most.
  absl::Status stop_;        // What the caller was told while it waited.
  bool is_abandoned_ = false;
  MonotonicTime give_up_;
  MonotonicTime ask_again_;
  std::chrono::nanoseconds ask_pause_ = kPgCancelPause;
};

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_PG_CONNECTION_H_
