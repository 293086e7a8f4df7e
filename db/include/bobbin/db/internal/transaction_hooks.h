// SPDX-License-Identifier: Apache-2.0
//
// TransactionHooks: what is to be called at a transaction's end. TransactionCourse: how it goes.
//
// The hooks outlive the transaction: they are called when it has given back its connection, so that
// they may use the database again.
//
//   Called from   the thread of the transaction.
//   Suspends      as the hooks do.

#ifndef BOBBIN_DB_INTERNAL_TRANSACTION_HOOKS_H_
#define BOBBIN_DB_INTERNAL_TRANSACTION_HOOKS_H_

#include <cstdint>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/status.h>

namespace bobbin::db::internal {

inline const absl::Status& StatusIn(const absl::Status& status) { return status; }
template <typename T>
const absl::Status& StatusIn(const absl::StatusOr<T>& result) {
  return result.status();
}

// How a transaction has ended. kUnknown: not yet, or nobody can tell.
enum class Outcome : uint8_t { kUnknown, kCommitted, kRolledBack };

class TransactionHooks {
 public:
  using Hook = absl::AnyInvocable<void()>;

  TransactionHooks() = default;
  TransactionHooks(const TransactionHooks&) = delete;
  TransactionHooks& operator=(const TransactionHooks&) = delete;
  // Calls those of the outcome.
  ~TransactionHooks() {
    if (outcome_ == Outcome::kCommitted) CallAll(on_commit_);
    if (outcome_ == Outcome::kRolledBack) CallAll(on_rollback_);
  }

  void OnCommit(Hook hook) { on_commit_.push_back(std::move(hook)); }
  void OnRollback(Hook hook) { on_rollback_.push_back(std::move(hook)); }
  void set_outcome(Outcome outcome) { outcome_ = outcome; }

 private:
  static void CallAll(std::vector<Hook>& hooks) {
    for (Hook& hook : hooks) hook();
  }

  std::vector<Hook> on_commit_;
  std::vector<Hook> on_rollback_;
  Outcome outcome_ = Outcome::kUnknown;
};

class TransactionCourse {
 public:
  // Begins, calls the body, and commits or rolls back. An exception leaves the rest to the
  // transaction's destructor.
  template <typename Transaction, typename F>
  static auto Run(Transaction& transaction, F& body) -> std::invoke_result_t<F&, Transaction&> {
    BOBBIN_RETURN_IF_ERROR(transaction.Begin());
    auto result = body(transaction);
    if (StatusIn(result).ok()) {
      BOBBIN_RETURN_IF_ERROR(transaction.Commit());
    } else {
      transaction.RollBack();
    }
    return result;
  }
};

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_INTERNAL_TRANSACTION_HOOKS_H_
