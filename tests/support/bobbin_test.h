// SPDX-License-Identifier: Apache-2.0
//
// BOBBIN_TEST(Suite, Case): a test whose body runs as a virtual thread, on one, two and four
// carriers. BOBBIN_FOREIGN_TEST(Suite, Case): the body runs on a foreign thread, next to such a
// runtime.
//
// Around each body: a watchdog that prints every virtual thread and aborts when the test hangs, and
// at the end a look for what was left over - virtual threads, timers, operations in flight,
// descriptors. The seed of random() is printed; BOBBIN_TEST_SEED sets it.
//
//   Called from   namespace scope. A body returns nothing; gtest's assertions work in it as usual.
//
// Example:
//   BOBBIN_TEST(EventTest, SetUnparksAllWaiters) {
//     Event event;
//     TaskGroup group;
//     group.Spawn([&] { return event.Wait(); });
//     event.Set();
//     ASSERT_OK(group.Wait());
//   }

#ifndef BOBBIN_TESTS_SUPPORT_BOBBIN_TEST_H_
#define BOBBIN_TESTS_SUPPORT_BOBBIN_TEST_H_

#include <functional>

#include "gtest/gtest.h"

#include <bobbin/sched/runtime.h>

#include "tests/support/random.h"
#include "tests/support/sanitizers.h"
#include "tests/support/status_matchers.h"

namespace bobbin::test {

// Calls `body` on the calling thread, next to a runtime with `options`, under a watchdog, and looks
// for leftovers at the end.
void WithRuntime(RuntimeOptions options, const std::function<void(Runtime&)>& body);

class RuntimeTest : public ::testing::Test {
 public:
  explicit RuntimeTest(bool is_foreign) : is_foreign_(is_foreign) {}
  void set_carriers(int carriers) { carriers_ = carriers; }

 protected:
  Runtime& runtime() { return *runtime_; }
  int carriers() const { return carriers_; }
  Random& random() { return random_; }

 private:
  void TestBody() final;
  virtual void Body() = 0;

  const bool is_foreign_;
  int carriers_ = 1;
  Random random_{0};
  Runtime* runtime_ = nullptr;
};

// Registers a case for each number of carriers. Returns true, to have something to initialise with.
bool RegisterRuntimeTest(const char* suite, const char* name, const char* file, int line,
                         RuntimeTest* (*make)());

}  // namespace bobbin::test

#define BOBBIN_RUNTIME_TEST(suite, name, is_foreign)                                          \
  class suite##_##name##_RuntimeTest final : public ::bobbin::test::RuntimeTest {             \
   public:                                                                                    \
    suite##_##name##_RuntimeTest() : RuntimeTest(is_foreign) {}                               \
                                                                                              \
   private:                                                                                   \
    void Body() override;                                                                     \
  };                                                                                          \
  [[maybe_unused]] static const bool suite##_##name##_is_registered =                         \
      ::bobbin::test::RegisterRuntimeTest(                                                    \
          #suite, #name, __FILE__, __LINE__,                                                  \
          []() -> ::bobbin::test::RuntimeTest* { return new suite##_##name##_RuntimeTest; }); \
  void suite##_##name##_RuntimeTest::Body()

#define BOBBIN_TEST(suite, name) BOBBIN_RUNTIME_TEST(suite, name, false)
#define BOBBIN_FOREIGN_TEST(suite, name) BOBBIN_RUNTIME_TEST(suite, name, true)

#endif  // BOBBIN_TESTS_SUPPORT_BOBBIN_TEST_H_
