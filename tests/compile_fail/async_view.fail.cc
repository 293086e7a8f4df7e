// EXPECT: refers to something of the caller's

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <bobbin/sched/async.h>

namespace bobbin {

inline Future<void> Call(Executor& executor) {
  const auto body = [](const auto&) {};
#ifdef BOBBIN_COMPILE_FAIL
  return Async(executor, body, std::string_view("a view"));
#else
  return Async(executor, body, std::string("a copy"));
#endif
}

}  // namespace bobbin
