// SPDX-License-Identifier: Apache-2.0
//
// MySqlConnection: a connection to a MySQL server, and what has been said on it so far.
//
// States, between exchanges:
//
//   idle      ready, outside a transaction: may go to anybody, unless a statement has changed the
//             session; then it is reset first
//   inside    ready, in a transaction: its owner's
//   broken    lost, or left in the middle of something: of no use but to be closed
//
// A caller that is to stop during a statement does not leave: it has the server kill the statement,
// and reads on, shielded, until the server has ended it. One that changes something and was done
// all the same is reported as done. The server has told the thread that runs the statement before
// it answers the request, and who is told so between two statements forgets it; to be sure, a
// statement that does nothing is sent behind it, until one is not killed. So once all that has been
// seen, no later statement can be hit. Where it does not come in time, or a statement was only half
// sent, the connection is broken.
//
//   Called from   virtual, platform and foreign threads; one at a time.
//   Suspends      whatever talks to the server.
//   Cancellation  CANCELLED or DEADLINE_EXCEEDED, after a time of MySqlServer::cancel_wait_max at
//                 most.
//   Errors        as mysql_error.h; UNAVAILABLE: the connection is lost.
//   Cost          a statement: a send, a wait, a receive; one that comes for the first time twice
//                 that.

#ifndef BOBBIN_DB_SRC_MYSQL_CONNECTION_H_
#define BOBBIN_DB_SRC_MYSQL_CONNECTION_H_

#include <mysql.h>

#include <chrono>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/clock.h>
#include <bobbin/core/status.h>
#include <bobbin/db/mysql_server.h>
#include <bobbin/db/row.h>
#include <bobbin/db/value.h>

#include "db/src/connection_pool.h"
#include "db/src/limits.h"
#include "db/src/mysql_cancel.h"
#include "db/src/mysql_error.h"
#include "db/src/mysql_link.h"
#include "db/src/mysql_text.h"

namespace bobbin::db::internal {

struct MySqlAnswer {
  Rows rows;
  int64_t changes = 0;
};

// What of it is wanted.
enum class MySqlWanted : uint8_t { kRows, kChanges };

// Where the connection is between two exchanges.
enum class MySqlPhase : uint8_t { kIdle, kInTransaction, kBroken };

class MySqlExchange;

class MySqlConnection final : public PooledConnection {
  // For make_unique: only Open has one.
  class Passkey {
    friend class MySqlConnection;
    Passkey() = default;
  };

 public:
  MySqlConnection(Passkey, const MySqlServer& server, MySqlLink link);
  // `server` must outlive it.
  static absl::StatusOr<std::unique_ptr<MySqlConnection>> Open(const MySqlServer& server);
  MySqlConnection(const MySqlConnection&) = delete;
  MySqlConnection& operator=(const MySqlConnection&) = delete;
  ~MySqlConnection() override;

  MySqlPhase phase() const;
  bool IsClean() const override {
    return phase() == MySqlPhase::kIdle && residue_ == Residue::kNone;
  }
  bool IsAlive() override;

  // Runs one statement to its end.
  absl::StatusOr<MySqlAnswer> Run(std::string_view sql, std::span<const Param> params,
                                  MySqlWanted wanted);
  // Runs any number of statements without values.
  absl::Status RunScript(std::string_view script);
  absl::Status Begin(std::string_view sql);
  // Ends the transaction, if there is one, whatever the caller is asked to: within
  // MySqlServer::finish_wait_max, or it is broken.
  void RollBack() noexcept;
  // The same for a commit. `is_unknown`, when it fails: whether it may have taken effect.
  absl::Status Commit(bool& is_unknown);
  // Resets the session, if a statement may have changed it. The same as for RollBack.
  void EndUse() noexcept;

 private:
  friend class MySqlExchange;

  struct CloseStatement {
    void operator()(MYSQL_STMT* statement) const { mysql_stmt_close(statement); }
  };
  using StatementHandle = std::unique_ptr<MYSQL_STMT, CloseStatement>;

  // A prepared text. The list is in the order of use, the last used first.
  struct KeptStatement {
    std::string sql;  // As the caller wrote it.
    MySqlText text;
    StatementHandle handle;
  };
  using KeptStatements = std::list<KeptStatement>;

  // Brings the session into the state that this module relies on.
  absl::Status Configure();
  absl::Status Reset();
  // Runs a text of our own.
  absl::Status RunOwn(std::string_view sql);
  absl::StatusOr<MySqlAnswer> RunIn(MySqlExchange& exchange, std::string_view sql,
                                    std::span<const Param> params, MySqlWanted wanted);
  absl::StatusOr<MySqlAnswer> RunOnce(MySqlExchange& exchange, KeptStatement& statement,
                                      std::span<const Param> params, MySqlWanted wanted);
  absl::StatusOr<MySqlAnswer> ReadAnswer(MySqlExchange& exchange, KeptStatement& statement,
                                         MySqlWanted wanted);
  // The prepared statement for a text.
  absl::StatusOr<KeptStatement*> Prepare(MySqlExchange& exchange, std::string_view sql);
  absl::Status Drop(MySqlExchange& exchange, KeptStatements::iterator kept);
  absl::Status DropAllBut(MySqlExchange& exchange, size_t count);

  const MySqlServer& server_;
  MySqlHandle handle_;
  MySqlThread thread_;
  bool is_broken_ = false;
  Residue residue_ = Residue::kNone;
  KeptStatements statements_;
  absl::flat_hash_map<std::string_view, KeptStatements::iterator> statement_of_;
};

// One statement of a caller's, from the sending to the end of its results.
class MySqlExchange {
 public:
  MySqlExchange(MySqlConnection& connection, std::string_view sql)
      : connection_(connection), sql_(sql) {}
  MySqlExchange(const MySqlExchange&) = delete;
  MySqlExchange& operator=(const MySqlExchange&) = delete;
  // Makes sure that the server does not end anything else.
  ~MySqlExchange();

  // Calls a function of libmariadb's: `start` and `go_on` are its halves. An error of `result`'s
  // kind is what the function returns for one.
  template <typename Result, typename Handle, typename... Args>
  absl::StatusOr<Result> Call(int (*start)(Result*, Handle*, Args...),
                              int (*go_on)(Result*, Handle*, int), Handle& handle, Args... args) {
    Result result{};
    const absl::Status driven = DriveMySql(
        *connection_.handle_, [this](int wants) { return Await(wants); },
        [&] { return start(&result, &handle, args...); },
        [&](int got) { return go_on(&result, &handle, got); });
    if (!driven.ok()) return Break(driven);
    return result;
  }
  // The same for one that returns 0 unless it fails.
  template <typename Result, typename Handle, typename... Args>
  absl::Status CallOrFail(int (*start)(Result*, Handle*, Args...),
                          int (*go_on)(Result*, Handle*, int), Handle& handle, Args... args) {
    BOBBIN_ASSIGN_OR_RETURN(const Result result, (Call(start, go_on, handle, args...)));
    return result == 0 ? absl::OkStatus() : Failed(ErrorOf(handle));
  }
  // Runs statements that are one text.
  absl::StatusOr<Rows> Ask(std::string_view sql);
  // The status for an error of the server's; that of the caller, if the caller was to stop.
  absl::Status Failed(const MySqlError& error);
  // For a statement that has read: a status of the caller's, if the server was asked to end it.
  // Functions that wait, such as get_lock, then return with a value that means nothing.
  absl::Status CheckRead() const;
  std::string Operation() const;

 private:
  absl::StatusOr<int> Await(int wants);
  absl::StatusOr<int> AwaitEnd(int wants);
  void AskToEnd();
  // Leaves the connection broken.
  absl::Status Break(absl::Status why);

  MySqlConnection& connection_;
  std::string_view sql_;
  absl::Status stop_;  // What the caller was told while it waited.
  bool is_abandoned_ = false;
  MonotonicTime give_up_;
  MonotonicTime ask_again_;
  std::chrono::nanoseconds ask_pause_ = kMySqlCancelPause;
};

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_MYSQL_CONNECTION_H_
