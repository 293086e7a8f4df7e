// SPDX-License-Identifier: Apache-2.0
//
// What the tests of HTTP share: a client that knows no HTTP, and a look at what it has got.
//
//   Called from   virtual threads of a runtime that does I/O.

#ifndef BOBBIN_TESTS_IO_HTTP_TEST_H_
#define BOBBIN_TESTS_IO_HTTP_TEST_H_

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include <bobbin/io/tcp.h>

#include "tests/io/io_test.h"

namespace bobbin::test {

inline io::TcpListener ListenHere() {
  auto listener = io::TcpListener::Bind("127.0.0.1:0");
  EXPECT_OK(listener);
  return *std::move(listener);
}

inline io::TcpStream ConnectTo(const io::SocketAddress& address) {
  auto stream = io::TcpStream::Connect(address);
  EXPECT_OK(stream);
  return *std::move(stream);
}

// All that comes until the end.
inline std::string ReadToEnd(io::TcpStream& stream) {
  std::string all;
  std::array<std::byte, 4096> buffer;
  while (true) {
    const auto received = stream.Read(buffer);
    if (!received.ok() || *received == 0) return all;
    all.append(reinterpret_cast<const char*>(buffer.data()), *received);
  }
}

// All that comes until it ends with `end`, or there is nothing more.
inline std::string ReadUntil(io::TcpStream& stream, std::string_view end) {
  std::string all;
  std::array<std::byte, 1> next;
  while (!all.ends_with(end)) {
    if (!stream.ReadExact(next).ok()) return all;
    all += static_cast<char>(next[0]);
  }
  return all;
}

// The answer without its Date fields, which are another one each second.
inline std::string WithoutDates(std::string text) {
  constexpr std::string_view kDate = "Date: ";
  for (size_t at = text.find(kDate); at != text.npos; at = text.find(kDate)) {
    text.erase(at, text.find("\r\n", at) + 2 - at);
  }
  return text;
}

// Sends the bytes and nothing after them; what comes back.
inline std::string Ask(const io::SocketAddress& server, std::string_view bytes) {
  io::TcpStream stream = ConnectTo(server);
  // The server may have refused it before the end: its answer is there all the same.
  if (stream.WriteAll(Bytes(bytes)).ok()) stream.ShutdownWrite().IgnoreError();
  return WithoutDates(ReadToEnd(stream));
}

}  // namespace bobbin::test

#endif  // BOBBIN_TESTS_IO_HTTP_TEST_H_
