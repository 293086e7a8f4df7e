// SPDX-License-Identifier: Apache-2.0

#include "io/src/dns_answer.h"

#include <sys/socket.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include "tests/support/random.h"
#include "tests/support/sanitizers.h"
#include "tests/support/seed.h"

namespace bobbin::test {
namespace {

using io::internal::DnsAnswer;
using io::internal::DnsOutcome;
using std::chrono::seconds;
using Message = std::vector<uint8_t>;

// The answer to a question for `a.test`, with `code` and these records after the question.
Message MakeMessage(uint8_t type, uint8_t code, uint8_t answers, uint8_t authorities,
                    const Message& records) {
  Message message = {0x12, 0x34,        0x81, static_cast<uint8_t>(0x80 | code),
                     0,    1,           0,    answers,
                     0,    authorities, 0,    0,
                     1,    'a',         4,    't',
                     'e',  's',         't',  0,
                     0,    type,        0,    1};
  message.insert(message.end(), records.begin(), records.end());
  return message;
}

// A record of the name in the question.
Message MakeRecord(uint8_t type, uint32_t keep, const Message& data) {
  Message record = {0xc0, 12, 0, type, 0, 1};
  for (int shift = 24; shift >= 0; shift -= 8)
    record.push_back(static_cast<uint8_t>(keep >> shift));
  record.push_back(0);
  record.push_back(static_cast<uint8_t>(data.size()));
  record.insert(record.end(), data.begin(), data.end());
  return record;
}

Message operator+(Message left, const Message& right) {
  left.insert(left.end(), right.begin(), right.end());
  return left;
}

// A start of authority whose last number is `minimum`.
Message MakeSoa(uint32_t keep, uint32_t minimum) {
  Message data = {0xc0, 12, 0xc0, 12};
  data.resize(data.size() + 16);
  for (int shift = 24; shift >= 0; shift -= 8) {
    data.push_back(static_cast<uint8_t>(minimum >> shift));
  }
  return MakeRecord(6, keep, data);
}

TEST(DnsAnswerTest, KeepsAsLongAsTheShortestRecord) {
  const DnsAnswer answer = DnsAnswer::Parse(
      AF_INET, MakeMessage(1, 0, 2, 0,
                           MakeRecord(1, 300, {192, 0, 2, 1}) + MakeRecord(1, 60, {192, 0, 2, 2})));
  EXPECT_EQ(answer.outcome, DnsOutcome::kAddresses);
  EXPECT_EQ(answer.addresses.size(), 2u);
  EXPECT_EQ(answer.keep, seconds(60));
}

TEST(DnsAnswerTest, AnAbsurdTimeIsNone) {
  const DnsAnswer answer =
      DnsAnswer::Parse(AF_INET, MakeMessage(1, 0, 1, 0, MakeRecord(1, 0x80000001, {192, 0, 2, 1})));
  EXPECT_EQ(answer.outcome, DnsOutcome::kAddresses);
  EXPECT_EQ(answer.keep, seconds(0));
}

TEST(DnsAnswerTest, ThatThereIsNothingIsKeptAsTheAuthoritySays) {
  for (const uint8_t code : {uint8_t{0}, uint8_t{3}}) {
    const DnsOutcome outcome = code == 0 ? DnsOutcome::kNoAddress : DnsOutcome::kNoName;
    const auto keep = [&](const Message& records) {
      const DnsAnswer answer = DnsAnswer::Parse(AF_INET, MakeMessage(1, code, 0, 1, records));
      EXPECT_EQ(answer.outcome, outcome);
      return answer.keep;
    };
    EXPECT_EQ(keep(MakeSoa(300, 60)), seconds(60));
    EXPECT_EQ(keep(MakeSoa(30, 60)), seconds(30));
    EXPECT_EQ(keep({}), seconds(0)) << "cut off";
    EXPECT_EQ(keep(MakeRecord(2, 300, {0xc0, 12})), seconds(0)) << "another record";
  }
}

TEST(DnsAnswerTest, AShortMessageIsNonsense) {
  const Message whole = MakeMessage(28, 0, 1, 0, MakeRecord(28, 60, Message(16, 1)));
  EXPECT_EQ(DnsAnswer::Parse(AF_INET6, whole).outcome, DnsOutcome::kAddresses);
  for (size_t bytes = 0; bytes < whole.size(); ++bytes) {
    EXPECT_EQ(DnsAnswer::Parse(AF_INET6, std::span(whole).first(bytes)).outcome,
              DnsOutcome::kNonsense)
        << bytes;
  }
}

TEST(DnsAnswerTest, AnyBytesCanBeRead) {
  Random random(Seed());
  const std::vector<Message> whole = {
      MakeMessage(1, 0, 1, 0, MakeRecord(1, 60, {192, 0, 2, 1})),
      MakeMessage(28, 0, 1, 0, MakeRecord(28, 60, Message(16, 1))),
      MakeMessage(1, 3, 0, 1, MakeSoa(300, 60)),
      MakeMessage(1, 0, 2, 0,
                  MakeRecord(5, 60, {1, 'b', 0xc0, 14}) +
                      Message{1, 'b', 0xc0, 14, 0, 1, 0, 1, 0, 0, 0, 9, 0, 4, 1, 2, 3, 4}),
  };
  for (int round = 0; round < Rounds(50'000); ++round) {
    Message message = whole[random.Below(whole.size())];
    for (uint64_t edits = 1 + random.Below(5); edits > 0; --edits) {
      message[random.Below(message.size())] =
          random.OneIn(3) ? static_cast<uint8_t>(0xc0) : static_cast<uint8_t>(random.Below(256));
    }
    if (random.OneIn(4)) message.resize(random.Below(message.size()) + 1);
    for (const int family : {AF_INET, AF_INET6}) {
      const DnsAnswer answer = DnsAnswer::Parse(family, message);
      EXPECT_EQ(answer.outcome == DnsOutcome::kAddresses, !answer.addresses.empty());
      EXPECT_GE(answer.keep, seconds(0));
      for (const io::SocketAddress& address : answer.addresses) {
        EXPECT_EQ(address.family(), family);
      }
    }
  }
}

}  // namespace
}  // namespace bobbin::test
