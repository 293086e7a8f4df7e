// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/check.h>
#include <bobbin/io/http/router.h>

#include "io/src/http/ascii.h"
#include "io/src/http/head.h"

namespace bobbin::io::http {

void Router::Handle(std::string_view pattern, Handler handler) {
  const size_t space = pattern.find(' ');
  const bool has_method = space != pattern.npos;
  const std::string_view method = has_method ? pattern.substr(0, space) : std::string_view();
  const std::string_view path = has_method ? pattern.substr(space + 1) : pattern;
  BOBBIN_CHECK(!has_method || internal::IsToken(method), "a route's method is none");
  BOBBIN_CHECK(path.starts_with('/') && path.find(' ') == path.npos,
               "a route is a path, or a method, a space and a path");
  Routes& routes = routes_[std::string(path)];
  for (const Route& route : routes) {
    BOBBIN_CHECK(route.method != method, "two handlers for one route");
  }
  routes.push_back({std::string(method), std::move(handler)});
}

const Router::Place* Router::PlaceOf(std::string_view path) const {
  auto found = routes_.find(path);
  while (found == routes_.end()) {
    // The next one above it that ends in a slash.
    if (path.size() < 2) return nullptr;
    const size_t slash = path.rfind('/', path.size() - 2);
    if (slash == path.npos) return nullptr;
    path = path.substr(0, slash + 1);
    found = routes_.find(path);
  }
  return &*found;
}

absl::StatusOr<Response> Router::operator()(Request& request) const {
  const std::string_view method = request.method();
  const Place* const place = PlaceOf(request.path());
  if (place == nullptr) {
    const int status = internal::IsKnownMethod(method) ? 404 : 501;
    return Response{.status = status,
                    .fields = {{"Content-Type", "text/plain"}},
                    .body = fmt::format("{}\n", StatusText(status))};
  }
  const Routes* const routes = &place->second;
  request.set_route(place->first);
  const auto route_of = [&](std::string_view wanted) {
    return std::find_if(routes->begin(), routes->end(),
                        [&](const Route& route) { return route.method == wanted; });
  };
  auto route = route_of(method);
  if (route == routes->end() && method == "HEAD") route = route_of("GET");
  if (route == routes->end()) route = route_of("");
  if (route != routes->end()) return route->handler(request);

  std::string allowed;
  for (const Route& other : *routes) {
    if (!allowed.empty()) allowed += ", ";
    allowed += other.method;
    if (other.method == "GET" && route_of("HEAD") == routes->end()) allowed += ", HEAD";
  }
  const int status = internal::IsKnownMethod(method) ? 405 : 501;
  return Response{.status = status,
                  .fields = {{"Allow", std::move(allowed)}, {"Content-Type", "text/plain"}},
                  .body = fmt::format("{}\n", StatusText(status))};
}

}  // namespace bobbin::io::http
