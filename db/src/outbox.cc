// SPDX-License-Identifier: Apache-2.0

#include <utility>

#include <fmt/format.h>

#include <bobbin/core/status.h>
#include <bobbin/db/outbox.h>

#include "db/src/outbox_core.h"
#include "db/src/sql_words.h"

namespace bobbin::db {

absl::StatusOr<Outbox> Outbox::Open(Database& database, OutboxOptions options) {
  BOBBIN_ASSIGN_OR_RETURN(const internal::SqlWords* const words,
                          internal::SqlWordsFor(database.dialect(), "open outbox"));
  if (!internal::IsTableName(options.table)) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      fmt::format("open outbox: \"{}\" is no name of a table", options.table));
  }
  if (!options.channel.empty() && !internal::IsPlainName(options.channel)) {
    return MakeStatus(absl::StatusCode::kInvalidArgument,
                      fmt::format("open outbox: \"{}\" is no name of a channel", options.channel));
  }
  auto core = std::make_shared<internal::OutboxCore>(database, std::move(options), *words);
  BOBBIN_RETURN_IF_ERROR(core->MakeTable());
  return Outbox(std::move(core));
}

absl::StatusOr<int64_t> Outbox::Add(Transaction& transaction, const OutboxEntry& entry) const {
  BOBBIN_ASSIGN_OR_RETURN(const int64_t id, core_->Add(transaction, entry));
  transaction.AfterCommit([core = core_] { core->bells().RingAll(); });
  return id;
}

absl::StatusOr<OutboxCounts> Outbox::Count() const { return core_->Count(); }

absl::StatusOr<std::vector<DeadMessage>> Outbox::Dead(size_t count_max) const {
  return core_->Dead(count_max);
}

absl::StatusOr<int64_t> Outbox::Revive(int64_t id) const { return core_->Revive(id); }

absl::Status Outbox::Discard(int64_t id) const { return core_->Discard(id); }

}  // namespace bobbin::db
