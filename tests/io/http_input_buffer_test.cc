// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "gtest/gtest.h"

#include "io/src/http/input_buffer.h"
#include "tests/io/io_test.h"

namespace bobbin::test {
namespace {

using io::http::internal::InputBuffer;

void Receive(InputBuffer& input, std::string_view bytes) {
  const std::span<std::byte> room = input.Room();
  ASSERT_GE(room.size(), bytes.size());
  std::ranges::copy(std::as_bytes(std::span(bytes)), room.begin());
  input.Received(bytes.size());
}

BOBBIN_IO_TEST(HttpInputBufferTest, WhatWasAdoptedIsReadAndGrowsIntoABufferOfItsOwn) {
  Pair pair = MakePair();
  ASSERT_OK(pair.left.WriteAll(Bytes("pooled")));
  auto read = pair.right.ReadPooled();
  ASSERT_OK(read);
  InputBuffer input;
  EXPECT_EQ(input.capacity(), 0U);
  input.Adopt(*std::move(read));
  EXPECT_EQ(input.unused(), "pooled");
  EXPECT_EQ(input.capacity(), io::PooledBytes::kBytesMax);
  Receive(input, " and more");
  EXPECT_EQ(input.unused(), "pooled and more");
  input.Use(11);

  const std::string large(10'000, 'x');
  input.Reserve(10'000 + 4);
  Receive(input, large);
  EXPECT_EQ(input.unused(), "more" + large);
  EXPECT_GT(input.capacity(), io::PooledBytes::kBytesMax);

  input.Use(input.unused().size());
  input.Release();
  EXPECT_EQ(input.capacity(), 0U);
  Receive(input, "again");
  EXPECT_EQ(input.unused(), "again");
}

BOBBIN_IO_TEST(HttpInputBufferTest, WhatIsPinnedStaysWhereItIs) {
  Pair pair = MakePair();
  ASSERT_OK(pair.left.WriteAll(Bytes("head body")));
  auto read = pair.right.ReadPooled();
  ASSERT_OK(read);
  InputBuffer input;
  input.Adopt(*std::move(read));
  const std::string_view head = input.unused().substr(0, 4);
  input.Pin(5);
  EXPECT_EQ(input.unused(), "body");
  input.Use(4);
  // Behind it there is room, over and over.
  for (int i = 0; i < 3; ++i) {
    const size_t room = input.Room().size();
    Receive(input, std::string(room, 'y'));
    EXPECT_EQ(head, "head");
    input.Use(room);
  }
  input.Unpin();
  EXPECT_TRUE(input.empty());
}

}  // namespace
}  // namespace bobbin::test
