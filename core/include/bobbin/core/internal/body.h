// SPDX-License-Identifier: Apache-2.0
//
// Body: what a virtual thread is to run, kept in its descriptor until it starts.
//
// A callable of up to kInlineBytes lies in the descriptor itself; a larger one on the heap. Running
// it moves it to the virtual thread's own stack first, so that the descriptor can use the same
// bytes for what a started thread needs.
//
//   Called from   Emplace: the spawner. Run: the virtual thread, once.
//   Suspends      Run: as the callable does.
//   Cost          one move of the callable.

#ifndef BOBBIN_CORE_INTERNAL_BODY_H_
#define BOBBIN_CORE_INTERNAL_BODY_H_

#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "absl/status/status.h"

namespace bobbin::internal {

// A body returns nothing or a status.
template <typename F>
concept BodyCallable =
    std::is_invocable_v<std::decay_t<F>&> && std::is_constructible_v<std::decay_t<F>, F> &&
    std::is_move_constructible_v<std::decay_t<F>> &&
    (std::is_void_v<std::invoke_result_t<std::decay_t<F>&>> ||
     std::is_convertible_v<std::invoke_result_t<std::decay_t<F>&>, absl::Status>);

class Body {
 public:
  static constexpr size_t kInlineBytes = 56;
  static constexpr size_t kInlineAlignment = alignof(void*);
  // Called with the stored bytes; leaves them free for other use, then runs the callable.
  using RunFunction = absl::Status (*)(void* stored);

  template <BodyCallable F>
  [[nodiscard]] static RunFunction Emplace(void* storage, F&& callable) {
    using Callable = std::decay_t<F>;
    if constexpr (IsInline<Callable>()) {
      ::new (storage) Callable(std::forward<F>(callable));
      return &RunInline<Callable>;
    } else {
      ::new (storage) Callable*(std::make_unique<Callable>(std::forward<F>(callable)).release());
      return &RunFromHeap<Callable>;
    }
  }

 private:
  template <typename Callable>
  static constexpr bool IsInline() {
    return sizeof(Callable) <= kInlineBytes && alignof(Callable) <= kInlineAlignment &&
           std::is_nothrow_move_constructible_v<Callable>;
  }

  template <typename Callable>
  static absl::Status Invoke(Callable& callable) {
    if constexpr (std::is_void_v<std::invoke_result_t<Callable&>>) {
      callable();
      return absl::OkStatus();
    } else {
      return callable();
    }
  }
  template <typename Callable>
  static absl::Status RunInline(void* stored) {
    Callable* const in_descriptor = std::launder(static_cast<Callable*>(stored));
    Callable callable(std::move(*in_descriptor));
    in_descriptor->~Callable();
    return Invoke(callable);
  }
  template <typename Callable>
  static absl::Status RunFromHeap(void* stored) {
    const std::unique_ptr<Callable> callable(*std::launder(static_cast<Callable**>(stored)));
    return Invoke(*callable);
  }
};

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_BODY_H_
