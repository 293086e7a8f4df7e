// SPDX-License-Identifier: Apache-2.0
//
// LocalTable: the VthreadLocal values of one thread, in the order in which they were made.
//
//   Called from   the thread itself.
//   Suspends      Destroy, if a value's destructor does.
//   Cost          linear in the number of values that the thread has made: a few.

#ifndef BOBBIN_CORE_SRC_LOCAL_TABLE_H_
#define BOBBIN_CORE_SRC_LOCAL_TABLE_H_

#include <vector>

namespace bobbin::internal {

class Thread;

class LocalTable {
 public:
  void* Find(const void* key) const noexcept;
  void Add(const void* key, void* value, void (*destroy)(void*));

  // The table pointer of `thread`.
  static LocalTable*& Of(Thread& thread) noexcept;
  // Destroys the values, the last made first, also those that a destructor makes anew; then the
  // table.
  static void Destroy(LocalTable*& table);

 private:
  struct Entry {
    const void* key;
    void* value;
    void (*destroy)(void*);
  };
  std::vector<Entry> entries_;
};

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_SRC_LOCAL_TABLE_H_
