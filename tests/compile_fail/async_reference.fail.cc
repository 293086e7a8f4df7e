// EXPECT: refers to something of the caller's

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <bobbin/sched/async.h>

namespace bobbin {

inline Future<void> Call(Executor& executor, const std::string& text) {
  const auto body = [](const auto&) {};
#ifdef BOBBIN_COMPILE_FAIL
  return Async(executor, body, std::ref(text));
#else
  return Async(executor, body, text);
#endif
}

}  // namespace bobbin
