// SPDX-License-Identifier: Apache-2.0
//
// Fields: the header fields of a message, in their order. FieldView: one that lies elsewhere.
//
// Names are compared without regard to case. A name may occur more than once.
//
//   Called from   any thread; one at a time.
//   Suspends      never.
//   Errors        none: names and values are checked where a message is sent.
//   Cost          linear in the number of fields, of which the first two need no allocation of
//                 their own.
//
// Example:
//   bobbin::io::http::Fields fields = {{"Content-Type", "text/plain"}};
//   fields.Set("Cache-Control", "no-store");

#ifndef BOBBIN_IO_HTTP_FIELDS_H_
#define BOBBIN_IO_HTTP_FIELDS_H_

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>

#include "absl/container/inlined_vector.h"

namespace bobbin::io::http {

struct Field {
  std::string name;
  std::string value;
};

struct FieldView {
  std::string_view name;
  std::string_view value;
};

class Fields {
 public:
  Fields() = default;
  Fields(std::initializer_list<Field> fields) : fields_(fields) {}

  // Appends one, whether or not there is one of that name.
  void Add(std::string_view name, std::string_view value);
  // Leaves one of that name, with that value.
  void Set(std::string_view name, std::string_view value);
  // Removes all of that name.
  void Remove(std::string_view name);

  // The value of the first of that name; valid until the next change.
  std::optional<std::string_view> Find(std::string_view name) const;

  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }
  size_t size() const { return fields_.size(); }
  bool empty() const { return fields_.empty(); }

 private:
  absl::InlinedVector<Field, 2> fields_;
};

}  // namespace bobbin::io::http

#endif  // BOBBIN_IO_HTTP_FIELDS_H_
