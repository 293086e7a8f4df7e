// SPDX-License-Identifier: Apache-2.0
//
// PgParams: values as libpq wants them.
//
// All go as texts whose type the server chooses, as it does for a literal in the text, so that an
// integer fits a column of any integer type. A blob says that it is one, and goes as it is.
//
//   Called from   any thread.
//   Suspends      never.
//   Lifetime      Borrows the blobs.
//   Cost          one allocation for the texts, one for the lists.

#ifndef BOBBIN_DB_SRC_PG_PARAMS_H_
#define BOBBIN_DB_SRC_PG_PARAMS_H_

#include <span>
#include <string>
#include <string_view>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"

#include <bobbin/db/value.h>

namespace bobbin::db::internal {

class PgParams {
 public:
  PgParams() = default;
  PgParams(PgParams&&) = default;
  PgParams& operator=(PgParams&&) = default;

  // INVALID_ARGUMENT for a text with a zero in it, which PostgreSQL cannot hold.
  static absl::StatusOr<PgParams> Of(std::span<const Param> params);

  int size() const { return static_cast<int>(places_.size()); }
  // What a prepared statement depends on, beside its text: where blobs are.
  std::string_view Signature() const { return has_blob_ ? std::string_view(signature_) : ""; }

  // The lists for libpq; valid while this is neither moved nor changed.
  struct Lists {
    absl::InlinedVector<unsigned, 8> types;
    absl::InlinedVector<const char*, 8> values;
    absl::InlinedVector<int, 8> lengths;
    absl::InlinedVector<int, 8> formats;
  };
  Lists MakeLists() const;
  // Copies the blobs, which so far were borrowed.
  void Own();

 private:
  struct Place {
    size_t offset = 0;           // Of a text, in `texts_`.
    const char* blob = nullptr;  // Of a blob that is borrowed.
    int size = 0;                // Of a blob.
    enum class Kind : uint8_t { kNull, kText, kBlob, kOwnBlob } kind = Kind::kNull;
  };

  absl::InlinedVector<Place, 8> places_;
  std::string texts_;      // Each with a zero behind it.
  std::string signature_;  // A character for each value.
  bool has_blob_ = false;
};

// Appends `content` as PostgreSQL reads it, and as COPY and arrays do before they quote it. False:
// it is NULL.
bool AppendText(std::string& text, const Param::Content& content);

}  // namespace bobbin::db::internal

#endif  // BOBBIN_DB_SRC_PG_PARAMS_H_
