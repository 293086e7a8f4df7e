// SPDX-License-Identifier: Apache-2.0

#include "core/src/local_table.h"

#include <memory>

#include <bobbin/core/check.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/os_thread.h>
#include <bobbin/core/internal/task.h>
#include <bobbin/core/local.h>

namespace bobbin::internal {

void* LocalTable::Find(const void* key) const noexcept {
  for (const Entry& entry : entries_) {
    if (entry.key == key) return entry.value;
  }
  return nullptr;
}

void LocalTable::Add(const void* key, void* value, void (*destroy)(void*)) {
  entries_.push_back({key, value, destroy});
}

LocalTable*& LocalTable::Of(Thread& thread) noexcept {
  BOBBIN_CHECK(thread.role() != Role::kCarrier, "a carrier has no locals");
  return thread.role() == Role::kVirtual ? static_cast<Task&>(thread).locals()
                                         : static_cast<OsThread&>(thread).locals();
}

void LocalTable::Destroy(LocalTable*& table) {
  while (table != nullptr && !table->entries_.empty()) {
    const Entry last = table->entries_.back();
    table->entries_.pop_back();
    last.destroy(last.value);
  }
  const std::unique_ptr<LocalTable> owned(table);
  table = nullptr;
}

void* FindLocal(const void* key) noexcept {
  const LocalTable* const table = LocalTable::Of(Current());
  return table == nullptr ? nullptr : table->Find(key);
}

void AddLocal(const void* key, void* value, void (*destroy)(void*)) {
  LocalTable*& table = LocalTable::Of(Current());
  if (table == nullptr) table = std::make_unique<LocalTable>().release();
  table->Add(key, value, destroy);
}

}  // namespace bobbin::internal
