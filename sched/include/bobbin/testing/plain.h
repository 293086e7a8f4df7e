// SPDX-License-Identifier: Apache-2.0
//
// Plain: data that is no atomic, and that a simulation watches.
//
// Two accesses from different OS threads, one of them a write, must be ordered by what the threads
// share: a lock, a channel, an acquire that reads from a release. Where nothing orders them the
// simulation fails, and names both places.
//
// Two virtual threads on the same carrier are on the same OS thread, and in order.
//
//   Called from   the threads of a simulation.
//   Suspends      never.
//   Lifetime      May be destroyed like the data it stands for.
//
// Example:
//   bobbin::testing::Plain<int> balance(0);
//   balance.Write(balance.Read() + 7);

#ifndef BOBBIN_TESTING_PLAIN_H_
#define BOBBIN_TESTING_PLAIN_H_

#include <utility>

#include <bobbin/core/internal/simulator.h>

namespace bobbin::testing {

template <typename T>
class Plain {
  using Place = bobbin::internal::Place;

 public:
  explicit Plain(T value, Place place = Place::Here()) : value_(std::move(value)) {
    bobbin::internal::Simulator::PlainCreated(&value_, place);
  }
  Plain(const Plain&) = delete;
  Plain& operator=(const Plain&) = delete;
  ~Plain() { bobbin::internal::Simulator::PlainWrite(&value_, Place::Here()); }

  const T& Read(Place place = Place::Here()) const {
    bobbin::internal::Simulator::PlainRead(&value_, place);
    return value_;
  }
  void Write(T value, Place place = Place::Here()) {
    bobbin::internal::Simulator::PlainWrite(&value_, place);
    value_ = std::move(value);
  }

 private:
  T value_;
};

}  // namespace bobbin::testing

#endif  // BOBBIN_TESTING_PLAIN_H_
