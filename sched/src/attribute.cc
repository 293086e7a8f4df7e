// SPDX-License-Identifier: Apache-2.0

#include <fmt/format.h>

#include <bobbin/sched/attribute.h>

namespace bobbin {

std::string AttributeValue::ToString() const {
  return std::visit([](const auto& value) { return fmt::format("{}", value); }, value_);
}

}  // namespace bobbin
