// EXPECT: (could not convert|no viable conversion|cannot convert|no known conversion).*Sql

#include <string>

#include <bobbin/db/value.h>

namespace bobbin::db {

inline size_t LengthOf(Sql sql) { return sql.text().size(); }

inline size_t LengthOfSelect(const std::string& table) {
#ifdef BOBBIN_COMPILE_FAIL
  return LengthOf("select * from " + table);
#else
  return LengthOf(UncheckedSql("select * from " + table));
#endif
}

}  // namespace bobbin::db
