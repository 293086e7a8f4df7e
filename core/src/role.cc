// SPDX-License-Identifier: Apache-2.0

#include <bobbin/core/role.h>

#include <unistd.h>

#include <bobbin/core/check.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/os_thread.h>
#include <bobbin/core/internal/task.h>

namespace bobbin {

std::string_view RoleName(Role role) {
  switch (role) {
    case Role::kVirtual:
      return "virtual";
    case Role::kCarrier:
      return "carrier";
    case Role::kPlatform:
      return "platform";
    case Role::kForeign:
      return "foreign";
  }
  return "unknown";
}

Role CurrentRole() { return internal::Current().role(); }

std::string DescribeCurrentThread() {
  internal::Thread* const thread = internal::CurrentOrNull();
  std::string text(thread == nullptr ? "foreign" : RoleName(thread->role()));
  text += " thread";
  if (thread == nullptr) return text + " " + std::to_string(gettid());
  if (thread->role() == Role::kCarrier) return text + " " + std::to_string(gettid());
  if (thread->role() == Role::kVirtual) {
    const auto& task = static_cast<const internal::Task&>(*thread);
    if (!task.name().empty()) text.append(" \"").append(task.name()).append("\"");
    return text + " (id " + std::to_string(task.id()) + ")";
  }
  const auto& os_thread = static_cast<const internal::OsThread&>(*thread);
  if (os_thread.name().empty()) return text + " " + std::to_string(gettid());
  return text.append(" \"").append(os_thread.name()).append("\"");
}

void CheckMayBlock(std::string_view operation) {
  const Role role = CurrentRole();
  if (role == Role::kPlatform || role == Role::kForeign) return;
  BOBBIN_CHECK(false, std::string(operation) +
                          " blocks the OS thread; use RunBlocking to call it on a platform thread");
}

}  // namespace bobbin
