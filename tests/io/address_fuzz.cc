// SPDX-License-Identifier: Apache-2.0
//
// The parsers of addresses under a fuzzer: any bytes are an address that can be printed and parsed
// again, or an error on one line.
//
// With Clang's libFuzzer it is a program of its own (io_address_fuzz); address_fuzz_test.cc calls
// it with random bytes and with mutations of what is an address.

#include "tests/io/address_fuzz.h"

#include <arpa/inet.h>

#include <algorithm>
#include <string>

#include <bobbin/core/check.h>
#include <bobbin/core/status.h>
#include <bobbin/io/address.h>
#include <bobbin/io/host_port.h>

namespace bobbin::test {

namespace {

void CheckError(const absl::Status& status) {
  BOBBIN_CHECK(absl::IsInvalidArgument(status), "an address is wrong in one way only");
  const std::string_view message = MessageOf(status);
  BOBBIN_CHECK(message.size() < 600, "in short");
  BOBBIN_CHECK(
      std::all_of(message.begin(), message.end(), [](char c) { return c >= ' ' && c <= '~'; }),
      "in characters that can be printed");
}

void CheckAddress(const io::SocketAddress& address) {
  const std::string text = address.ToString();
  const auto again = io::SocketAddress::Parse(text);
  BOBBIN_CHECK(again.ok() && *again == address && again->ToString() == text,
               "what is printed means the same");
  const auto host = io::SocketAddress::Parse(address.HostToString(), address.port());
  BOBBIN_CHECK(host.ok() && *host == address, "so does the host alone");
  const auto copy = io::SocketAddress::FromSockaddr(address.data(), address.bytes());
  BOBBIN_CHECK(copy.ok() && *copy == address, "so does what the system uses");
  BOBBIN_CHECK(address.WithPort(7).WithPort(address.port()) == address,
               "the port is the last part");
}

}  // namespace

void ParseAnyAddress(std::string_view text) {
  const auto parts = io::HostPort::Split(text);
  const auto address = io::SocketAddress::Parse(text);
  if (!parts.ok()) {
    CheckError(parts.status());
    BOBBIN_CHECK(!address.ok(), "an address has a host and a port");
  } else {
    const std::string written = parts->ToString();
    const auto again = io::HostPort::Split(written);
    BOBBIN_CHECK(again.ok() && *again == *parts, "what is joined can be split");
  }
  if (address.ok()) {
    CheckAddress(*address);
  } else {
    CheckError(address.status());
  }
  const auto host = io::SocketAddress::Parse(text, 80);
  if (host.ok()) {
    CheckAddress(*host);
    BOBBIN_CHECK(host->port() == 80, "the port is the one that was given");
  } else {
    CheckError(host.status());
  }
  // IPv4 is what the system takes for it, and nothing else.
  in_addr v4{};
  const bool is_v4 =
      text.find('\0') == text.npos && inet_pton(AF_INET, std::string(text).c_str(), &v4) == 1;
  BOBBIN_CHECK(is_v4 == (host.ok() && !host->is_ipv6()), "the system agrees about IPv4");
}

}  // namespace bobbin::test

#if defined(BOBBIN_LIBFUZZER)
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  bobbin::test::ParseAnyAddress({reinterpret_cast<const char*>(data), size});
  return 0;
}
#endif
