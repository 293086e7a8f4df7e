// SPDX-License-Identifier: Apache-2.0

#include <algorithm>

#include <bobbin/io/http/fields.h>

#include "io/src/http/ascii.h"

namespace bobbin::io::http {

void Fields::Add(std::string_view name, std::string_view value) {
  fields_.push_back({std::string(name), std::string(value)});
}

void Fields::Set(std::string_view name, std::string_view value) {
  Remove(name);
  Add(name, value);
}

void Fields::Remove(std::string_view name) {
  const auto has_name = [&](const Field& field) { return internal::IsSame(field.name, name); };
  fields_.erase(std::remove_if(fields_.begin(), fields_.end(), has_name), fields_.end());
}

std::optional<std::string_view> Fields::Find(std::string_view name) const {
  for (const Field& field : fields_) {
    if (internal::IsSame(field.name, name)) return field.value;
  }
  return std::nullopt;
}

}  // namespace bobbin::io::http
