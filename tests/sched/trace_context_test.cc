// SPDX-License-Identifier: Apache-2.0

#include <string>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/status.h>
#include <bobbin/sched/trace_context.h>

#include "tests/support/random.h"
#include "tests/support/seed.h"
#include "tests/support/status_matchers.h"

namespace bobbin {
namespace {

constexpr std::string_view kParent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

std::string StateOf(std::string_view header) {
  const auto context = ParseTraceContext(kParent, header);
  EXPECT_OK(context);
  return context.ok() ? context->trace_state : "?";
}

TEST(TraceContextTest, WhatIsReadIsWrittenAgain) {
  const auto context = ParseTraceParent(kParent);
  ASSERT_OK(context);
  EXPECT_EQ(context->trace_id.ToString(), "0af7651916cd43dd8448eb211c80319c");
  EXPECT_EQ(context->span_id.ToString(), "b7ad6b7169203331");
  EXPECT_TRUE(context->is_sampled);
  EXPECT_EQ(TraceParentOf(*context), kParent);
  test::Random random(test::Seed());
  for (int round = 0; round < 1000; ++round) {
    const SpanContext made{.trace_id = {random.Next(), random.Next()},
                           .span_id = {random.Next()},
                           .is_sampled = random.OneIn(2),
                           .trace_state = {}};
    if (made.is_set()) {
      EXPECT_THAT(ParseTraceParent(TraceParentOf(made)), test::IsOkAndHolds(made));
    }
  }
}

TEST(TraceContextTest, OfTheFlagsTheFirstIsKnown) {
  for (const auto& [flags, is_sampled] : {std::pair("00", false), std::pair("01", true),
                                          std::pair("ff", true), std::pair("fe", false)}) {
    const auto context = ParseTraceParent(std::string(kParent.substr(0, 53)) + flags);
    ASSERT_OK(context);
    EXPECT_EQ(context->is_sampled, is_sampled) << flags;
    EXPECT_EQ(TraceParentOf(*context).substr(53), is_sampled ? "01" : "00");
  }
}

TEST(TraceContextTest, NewerVersionsAreReadAsFarAsTheyAreKnown) {
  const std::string rest(kParent.substr(2));
  for (const std::string& header : {"01" + rest, "cc" + rest + "-what-the-future-brings",
                                    "fe" + rest + "-", " \t" + std::string(kParent) + "  "}) {
    EXPECT_THAT(ParseTraceParent(header), test::IsOk()) << header;
  }
  // But not what goes on without a dash; and of version 00 nothing goes on.
  for (const std::string& header : {"01" + rest + "x", "00" + rest + "-x", "ff" + rest}) {
    EXPECT_FALSE(ParseTraceParent(header).ok()) << header;
  }
}

TEST(TraceContextTest, WhatIsWrongIsRefused) {
  for (std::string_view header : {"", "00", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
                                  "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
                                  "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
                                  "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333x-01",
                                  "00-00000000000000000000000000000000-b7ad6b7169203331-01",
                                  "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
                                  "00_0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                                  "0x-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                                  "00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01",
                                  "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0x"}) {
    EXPECT_THAT(ParseTraceParent(header), test::StatusIs(absl::StatusCode::kInvalidArgument))
        << header;
  }
}

TEST(TraceContextTest, AnyBytesAreReadToTheirEnd) {
  test::Random random(test::Seed());
  for (int round = 0; round < 20'000; ++round) {
    std::string header(kParent);
    for (int i = 0; i < 3; ++i)
      header[random.Below(header.size())] = static_cast<char>(random.Next());
    const auto context = ParseTraceParent(header);
    if (context.ok()) {
      EXPECT_TRUE(context->is_set()) << header;
    }
    EXPECT_OK(ParseTraceContext(kParent, header));
  }
}

TEST(TraceContextTest, TheStateOfOthersIsPassedOn) {
  EXPECT_EQ(StateOf(""), "");
  EXPECT_EQ(StateOf("rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"),
            "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE");
  // Space around members and empty ones are let through, and left out.
  EXPECT_EQ(StateOf("a=1 ,\t b=2,, ,c=x y/z:!~"), "a=1,b=2,c=x y/z:!~");
  EXPECT_EQ(StateOf("fw529a3039@dt=1,0tenant@s-_*/9=2"), "fw529a3039@dt=1,0tenant@s-_*/9=2");
  EXPECT_EQ(StateOf(std::string(256, 'k') + "=" + std::string(256, 'v')).size(), 513u);
}

TEST(TraceContextTest, AStateThatIsWrongIsLeftOutAndTheParentKept) {
  std::string too_many = "k0=1";
  for (int i = 1; i < 33; ++i) too_many += ",k" + std::to_string(i) + "=1";
  for (const std::string& header :
       {std::string("a"), std::string("=1"), std::string("a="), std::string("A=1"),
        std::string("a=1,a=2"), std::string("a=b=c"), std::string("a@b@c=1"), std::string("@b=1"),
        std::string("a@=1"), std::string("a =1"), std::string("a=\x01"), std::string("a=\xC3\xA4"),
        std::string(257, 'k') + "=1", "k=" + std::string(257, 'v'),
        "t@" + std::string(15, 's') + "=1", too_many}) {
    EXPECT_EQ(StateOf(header), "") << header;
  }
  EXPECT_FALSE(ParseTraceContext("00", "a=1").ok());
}

}  // namespace
}  // namespace bobbin
