// SPDX-License-Identifier: Apache-2.0

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <utility>

#include <bobbin/core/status.h>

#include "tests/io/io_test.h"

namespace bobbin::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr io::TcpOptions kUnusual = {
    .small_writes = io::SmallWrites::kGathered,
    .keep_alive = io::KeepAlive{.idle = seconds(70), .interval = seconds(11), .questions_max = 3},
    .unanswered_max = milliseconds(12'345),
    .receive_buffer_bytes = 30'000,
    .send_buffer_bytes = 40'000,
    .on_close = io::OnClose::kReset};

void ExpectUnusual(const absl::StatusOr<io::TcpOptions>& options) {
  ASSERT_OK(options);
  EXPECT_EQ(options->small_writes, io::SmallWrites::kGathered);
  ASSERT_TRUE(options->keep_alive.has_value());
  EXPECT_EQ(options->keep_alive->idle, seconds(70));
  EXPECT_EQ(options->keep_alive->interval, seconds(11));
  EXPECT_EQ(options->keep_alive->questions_max, 3);
  EXPECT_EQ(options->unanswered_max, milliseconds(12'345));
  EXPECT_EQ(options->receive_buffer_bytes, 30'000u);
  EXPECT_EQ(options->send_buffer_bytes, 40'000u);
  EXPECT_EQ(options->on_close, io::OnClose::kReset);
}

void ExpectUsual(const absl::StatusOr<io::TcpOptions>& options) {
  ASSERT_OK(options);
  EXPECT_EQ(options->small_writes, io::SmallWrites::kAtOnce);
  EXPECT_FALSE(options->keep_alive.has_value());
  EXPECT_EQ(options->unanswered_max, milliseconds(0));
  EXPECT_EQ(options->receive_buffer_bytes, 0u);
  EXPECT_EQ(options->send_buffer_bytes, 0u);
  EXPECT_EQ(options->on_close, io::OnClose::kDeliver);
}

BOBBIN_IO_TEST(TcpOptionsTest, StreamsBeginWithWhatTheyAreGiven) {
  auto listener = io::TcpListener::Bind("127.0.0.1:0", {.streams = kUnusual});
  ASSERT_OK(listener);
  auto usual = io::TcpStream::Connect(listener->local_address());
  ASSERT_OK(usual);
  auto accepted = listener->Accept();
  ASSERT_OK(accepted);
  ExpectUsual(usual->options());
  ExpectUnusual(accepted->options());

  auto unusual = io::TcpStream::Connect(listener->local_address(), kUnusual);
  ASSERT_OK(unusual);
  ExpectUnusual(unusual->options());
}

BOBBIN_IO_TEST(TcpOptionsTest, TheyAreSetAtAnyTimeAndOneByOne) {
  Pair pair = MakePair();
  ExpectUsual(pair.left.options());
  ASSERT_OK(pair.left.SetOptions(kUnusual));
  ExpectUnusual(pair.left.options());
  // What is read is what can be set.
  ASSERT_OK(pair.left.SetOptions(*pair.left.options()));
  ExpectUnusual(pair.left.options());

  io::TcpOptions options = *pair.left.options();
  options.keep_alive.reset();
  ASSERT_OK(pair.left.SetOptions(options));
  options = *pair.left.options();
  EXPECT_FALSE(options.keep_alive.has_value());
  EXPECT_EQ(options.small_writes, io::SmallWrites::kGathered);
  ASSERT_OK(pair.left.SetOptions({}));
  options = *pair.left.options();
  EXPECT_EQ(options.small_writes, io::SmallWrites::kAtOnce);
  EXPECT_EQ(options.unanswered_max, milliseconds(0));
  EXPECT_EQ(options.on_close, io::OnClose::kDeliver);
  // A stream that was given a size keeps it.
  EXPECT_EQ(options.send_buffer_bytes, 40'000u);
}

BOBBIN_IO_TEST(TcpOptionsTest, WhatTheSystemRefusesIsAnErrorThatSaysSo) {
  Pair pair = MakePair();
  const absl::Status status =
      pair.left.SetOptions({.keep_alive = io::KeepAlive{.idle = seconds(1'000'000)}});
  EXPECT_THAT(status, StatusIs(kInvalidArgument));
  EXPECT_TRUE(MessageOf(status).starts_with("set options: "));
  EXPECT_THAT(io::TcpStream::Connect(*pair.left.local_address(),
                                     {.keep_alive = io::KeepAlive{.questions_max = 1000}}),
              StatusIs(kInvalidArgument));
  EXPECT_THAT(
      io::TcpListener::Bind("127.0.0.1:0",
                            {.streams = {.keep_alive = io::KeepAlive{.interval = seconds(0)}}}),
      StatusIs(kInvalidArgument));
  // Streams that are no TCP have none.
  Pair local = MakeLocalPair();
  EXPECT_FALSE(local.left.options().ok());
  EXPECT_FALSE(local.left.SetOptions({}).ok());
}

BOBBIN_IO_TEST(TcpOptionsTest, ACloseDeliversWhatWasWrittenUnlessItIsToReset) {
  for (const io::OnClose on_close : {io::OnClose::kDeliver, io::OnClose::kReset}) {
    Pair pair = MakePair();
    ASSERT_OK(pair.left.SetOptions({.on_close = on_close}));
    const std::string text(size_t{200} << 10, 't');
    ASSERT_OK(pair.left.WriteAll(Bytes(text)));
    pair.left.Close();
    std::string all;
    std::string part(text.size(), '\0');
    absl::StatusOr<size_t> received;
    while ((received = pair.right.Read(std::as_writable_bytes(std::span(part)))).ok()) {
      if (*received == 0) break;
      all.append(part, 0, *received);
    }
    if (on_close == io::OnClose::kDeliver) {
      EXPECT_OK(received);
      EXPECT_EQ(all.size(), text.size());
    } else {
      EXPECT_THAT(received, StatusIs(kUnavailable));
    }
  }
}

// It would wait in close(2), on a carrier.
BOBBIN_IO_TEST(TcpOptionsTest, AnAdoptedStreamDoesNotLinger) {
  auto listener = io::TcpListener::Bind("127.0.0.1:0");
  ASSERT_OK(listener);
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(::connect(fd, listener->local_address().data(), listener->local_address().bytes()), 0);
  const linger long_time{.l_onoff = 1, .l_linger = 3600};
  ASSERT_EQ(::setsockopt(fd, SOL_SOCKET, SO_LINGER, &long_time, sizeof(long_time)), 0);
  io::TcpStream stream = io::TcpStream::Adopt(fd);
  linger how{.l_onoff = -1, .l_linger = -1};
  socklen_t bytes = sizeof(how);
  ASSERT_EQ(::getsockopt(fd, SOL_SOCKET, SO_LINGER, &how, &bytes), 0);
  EXPECT_EQ(how.l_onoff, 0);
}

}  // namespace
}  // namespace bobbin::test
