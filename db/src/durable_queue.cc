// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include <fmt/format.h>

#include <bobbin/core/status.h>
#include <bobbin/db/durable_queue.h>

#include "db/src/durable_queue_core.h"
#include "db/src/sql_words.h"

namespace bobbin::db {

std::string_view QueueStateName(QueueState state) {
  switch (state) {
    case QueueState::kReady:
      return "ready";
    case QueueState::kWaiting:
      return "waiting";
    case QueueState::kRunning:
      return "running";
    case QueueState::kDone:
      return "done";
    case QueueState::kDead:
      return "dead";
  }
  return "?";
}

absl::StatusOr<DurableQueue> DurableQueue::Open(Database& database, DurableQueueOptions options) {
  BOBBIN_ASSIGN_OR_RETURN(const internal::SqlWords* const words,
                          internal::SqlWordsFor(database.dialect(), "open queue"));
  const auto wrong = [](std::string_view what, std::string_view name) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      fmt::format("open queue: \"{}\" is no name of a {}", name, what));
  };
  if (options.name.empty()) return wrong("queue", options.name);
  if (!internal::IsTableName(options.table)) return wrong("table", options.table);
  if (!options.channel.empty() && !internal::IsPlainName(options.channel)) {
    return wrong("channel", options.channel);
  }
  auto core = std::make_shared<internal::DurableQueueCore>(database, std::move(options), *words);
  BOBBIN_RETURN_IF_ERROR(core->MakeTable());
  return DurableQueue(std::move(core));
}

absl::StatusOr<Enqueued> DurableQueue::Enqueue(Transaction& transaction,
                                               const QueueEntry& entry) const {
  BOBBIN_ASSIGN_OR_RETURN(const Enqueued enqueued, core_->Enqueue(transaction, entry));
  if (enqueued.how == Enqueued::How::kNew) {
    transaction.AfterCommit([core = core_] { core->bells().RingAll(); });
  }
  return enqueued;
}

absl::StatusOr<QueueCounts> DurableQueue::Count() const { return core_->Count(); }

absl::StatusOr<std::vector<QueueTaskInfo>> DurableQueue::List(
    const QueueListOptions& options) const {
  return core_->List(options);
}

absl::Status DurableQueue::Revive(int64_t id) const { return core_->Revive(id); }

absl::Status DurableQueue::Remove(int64_t id) const { return core_->Remove(id); }

}  // namespace bobbin::db
