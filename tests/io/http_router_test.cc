// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <string_view>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/io/http/router.h>
#include <bobbin/io/http/server.h>

#include "tests/io/http_test.h"
#include "tests/io/io_test.h"

namespace bobbin::test {
namespace {

using io::http::Handler;
using io::http::Request;
using io::http::Response;
using io::http::Router;
using testing::HasSubstr;
using testing::StartsWith;

Handler Says(std::string text) {
  return [text](Request& request) {
    return Response{.body = text + " of " + std::string(request.method())};
  };
}

BOBBIN_IO_TEST(HttpRouterTest, TheLongestPathAndTheMethodDecide) {
  Router router;
  router.Handle("GET /", Says("root"));
  router.Handle("GET /a", Says("a"));
  router.Handle("POST /a", Says("post"));
  router.Handle("/a/", Says("below a"));
  router.Handle("GET /a/b/", Says("below b"));
  io::http::Server server({}, ListenHere(), std::move(router));
  const auto answer = [&](std::string_view line) {
    return Ask(server.local_address(), std::string(line) + " HTTP/1.1\r\nHost: x\r\n\r\n");
  };
  EXPECT_THAT(answer("GET /a"), HasSubstr("\r\n\r\na of GET"));
  EXPECT_THAT(answer("GET /a?b/c"), HasSubstr("\r\n\r\na of GET"));
  EXPECT_THAT(answer("GET http://x/a?b"), HasSubstr("\r\n\r\na of GET"));
  EXPECT_THAT(answer("GET http://x"), HasSubstr("root of GET"));
  EXPECT_THAT(answer("OPTIONS *"), StartsWith("HTTP/1.1 404"));
  EXPECT_THAT(answer("POST /a"), HasSubstr("post of POST"));
  EXPECT_THAT(answer("PUT /a/c"), HasSubstr("below a of PUT"));
  EXPECT_THAT(answer("GET /a/b/c/d"), HasSubstr("below b of GET"));
  EXPECT_THAT(answer("GET /c"), HasSubstr("root of GET"));
  EXPECT_THAT(answer("HEAD /a"), testing::AllOf(StartsWith("HTTP/1.1 200"), HasSubstr("h: 9\r\n")));
  EXPECT_THAT(answer("DELETE /a"), testing::AllOf(StartsWith("HTTP/1.1 405 Method Not Allowed\r\n"),
                                                  HasSubstr("Allow: GET, HEAD, POST\r\n")));
  EXPECT_THAT(answer("FROB /a"), StartsWith("HTTP/1.1 501"));
}

BOBBIN_IO_TEST(HttpRouterTest, WhatNobodyAnswersIsNotFound) {
  Router router;
  router.Handle("/only/", Says("below"));
  io::http::Server server({}, ListenHere(), std::move(router));
  EXPECT_THAT(Ask(server.local_address(), "GET /other HTTP/1.1\r\nHost: x\r\n\r\n"),
              StartsWith("HTTP/1.1 404 Not Found\r\n"));
  EXPECT_THAT(Ask(server.local_address(), "FROB /other HTTP/1.1\r\nHost: x\r\n\r\n"),
              StartsWith("HTTP/1.1 501 Not Implemented\r\n"));
}

TEST(HttpRouterDeathTest, AMistakeInAPatternAborts) {
  Router router;
  router.Handle("GET /", Says("root"));
  EXPECT_DEATH(router.Handle("GET /", Says("again")), "two handlers for one route");
  EXPECT_DEATH(router.Handle("GET", Says("no path")), "a route is a path");
  EXPECT_DEATH(router.Handle("G(T /", Says("no method")), "a route's method is none");
}

}  // namespace
}  // namespace bobbin::test
