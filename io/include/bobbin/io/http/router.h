// SPDX-License-Identifier: Apache-2.0
//
// Router: which handler answers which request, by method and path.
//
// A pattern is a method and a path, or a path alone for all methods: "GET /notes". A path that ends
// in a slash stands for all that are below it, too: "/static/". An exact path wins over those, a
// longer one over a shorter one. GET also answers HEAD. Paths are compared as they were sent;
// nothing is decoded, and `..` means nothing.
//
// What no pattern fits is answered 404; a path that has other methods, 405 with an Allow field; a
// method that nobody knows, 501.
//
//   Called from   Handle: before the router is given to a server, and one at a time. Then any
//                 number of threads call it.
//   Suspends      if its handlers do.
//   Errors        Two handlers for one pattern, and a pattern that is none, abort.
//   Cost          A look into a hash table; if that has no such path, one for each slash in it.
//
// Example:
//   bobbin::io::http::Router router;
//   router.Handle("GET /hello", [](bobbin::io::http::Request&) {
//     return bobbin::io::http::Response{.body = "hello\n"};
//   });
//   bobbin::io::http::Server server({.name = "web"}, std::move(listener), std::move(router));

#ifndef BOBBIN_IO_HTTP_ROUTER_H_
#define BOBBIN_IO_HTTP_ROUTER_H_

#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"

#include <bobbin/io/http/request.h>
#include <bobbin/io/http/response.h>

namespace bobbin::io::http {

// Answers a request. A status that is not OK is answered by the code that fits it best: 404 for
// NOT_FOUND, 500 for what has none; its message stays here.
using Handler = absl::AnyInvocable<absl::StatusOr<Response>(Request&) const>;

class Router {
 public:
  void Handle(std::string_view pattern, Handler handler);

  absl::StatusOr<Response> operator()(Request& request) const;

 private:
  struct Route {
    std::string method;  // Empty: all.
    Handler handler;
  };
  using Routes = std::vector<Route>;
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };

  // A path, and who answers there.
  using Place = std::pair<const std::string, Routes>;

  // That of the path, or the longest one above it that ends in a slash; or null.
  const Place* PlaceOf(std::string_view path) const;

  std::unordered_map<std::string, Routes, Hash, std::equal_to<>> routes_;
};

}  // namespace bobbin::io::http

#endif  // BOBBIN_IO_HTTP_ROUTER_H_
