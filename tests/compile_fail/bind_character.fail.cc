// EXPECT: (constraints not satisfied|no matching function|not satisf)

#include <bobbin/db/sqlite.h>

namespace bobbin::db {

// A character is neither a number nor a text.
inline absl::StatusOr<Rows> Find(Sqlite& db) {
#ifdef BOBBIN_COMPILE_FAIL
  return db.Query("select ?1", 'x');
#else
  return db.Query("select ?1", "x");
#endif
}

}  // namespace bobbin::db
