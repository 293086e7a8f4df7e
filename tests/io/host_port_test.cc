// SPDX-License-Identifier: Apache-2.0

#include <string_view>

#include "gtest/gtest.h"

#include <bobbin/core/status.h>
#include <bobbin/io/host_port.h>

#include "tests/support/status_matchers.h"

namespace bobbin::io {
namespace {

using test::StatusIs;

TEST(HostPortTest, SplitsNamesAndNumbers) {
  const struct {
    std::string_view text, host;
    uint16_t port;
  } rows[] = {
      {"example.org:80", "example.org", 80},       {"localhost:0", "localhost", 0},
      {"127.0.0.1:65535", "127.0.0.1", 65535},     {"[::1]:80", "::1", 80},
      {"[fe80::1%eth0]:443", "fe80::1%eth0", 443}, {"a:007", "a", 7},
  };
  for (const auto& row : rows) {
    const auto parts = HostPort::Split(row.text);
    ASSERT_OK(parts) << row.text;
    EXPECT_EQ(parts->host, row.host);
    EXPECT_EQ(parts->port, row.port);
  }
}

TEST(HostPortTest, JoinsAsItSplits) {
  for (const std::string_view text : {"example.org:80", "127.0.0.1:7000", "[::1]:80"}) {
    EXPECT_EQ(HostPort::Split(text)->ToString(), text);
  }
}

TEST(HostPortTest, AnErrorSaysWhatIsWrong) {
  const struct {
    std::string_view text, why;
  } rows[] = {
      {"", "no port; write host:port"},
      {"example.org", "no port; write host:port"},
      {":80", "no host; write host:port"},
      {"example.org:", "the port is not a number from 0 to 65535"},
      {"example.org:http", "the port is not a number from 0 to 65535"},
      {"example.org:65536", "the port is not a number from 0 to 65535"},
      {"example.org:-1", "the port is not a number from 0 to 65535"},
      {"::1:80", "an IPv6 host stands in brackets: [::1]:80"},
      {"[example.org]:80", "brackets are for IPv6"},
      {"[]:80", "brackets are for IPv6"},
  };
  for (const auto& row : rows) {
    const absl::Status status = HostPort::Split(row.text).status();
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kInvalidArgument));
    EXPECT_EQ(MessageOf(status), "address " + std::string(row.text) + ": " + std::string(row.why));
  }
}

TEST(HostPortTest, AnErrorIsOnOneLineWhateverTheTextIs) {
  EXPECT_EQ(MessageOf(HostPort::Split("a\nb\x1b[0m").status()),
            "address a?b?[0m: no port; write host:port");
  const std::string endless(100'000, 'x');
  EXPECT_LT(MessageOf(HostPort::Split(endless).status()).size(), 600u);
}

}  // namespace
}  // namespace bobbin::io
