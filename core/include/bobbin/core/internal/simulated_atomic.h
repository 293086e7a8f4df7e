// SPDX-License-Identifier: Apache-2.0
//
// SimulatedAtomic: the Atomic of a simulation. Each access is a step, before which another thread
// may run, and a load may answer with an older value where the C++ memory model allows that.
//
// The object holds the newest value, the last one in the order of modification; the simulator keeps
// what came before it, and who knows of what. Outside a simulation it is a plain variable.
//
//   Called from   the threads of a simulation.
//   Suspends      each access may switch to another simulated OS thread.
//   Lifetime      An access after the destructor fails the simulation.

#ifndef BOBBIN_CORE_INTERNAL_SIMULATED_ATOMIC_H_
#define BOBBIN_CORE_INTERNAL_SIMULATED_ATOMIC_H_

#include <atomic>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <bobbin/core/internal/simulator.h>

namespace bobbin::internal {

template <typename T>
class Atomic {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= sizeof(uint64_t));
  static constexpr std::memory_order kStrongest = std::memory_order_seq_cst;

 public:
  constexpr Atomic() noexcept : Atomic(T()) {}
  constexpr Atomic(T value) noexcept : value_(value) {  // NOLINT: as std::atomic's.
    if (!std::is_constant_evaluated()) Simulator::Created(&value_);
  }
  Atomic(const Atomic&) = delete;
  Atomic& operator=(const Atomic&) = delete;
  constexpr ~Atomic() {
    if (!std::is_constant_evaluated()) Simulator::Destroyed(&value_);
  }

  T load(std::memory_order order = kStrongest, Place place = Place::Here()) const noexcept {
    Simulator::Step(StepKind::kLoad, &value_, place);
    return Value(Simulator::Load(&value_, Bits(value_), order));
  }
  void store(T value, std::memory_order order = kStrongest, Place place = Place::Here()) noexcept {
    Simulator::Step(StepKind::kStore, &value_, place);
    Simulator::Store(&value_, Bits(value_), Bits(value), order);
    value_ = value;
  }
  T exchange(T value, std::memory_order order = kStrongest, Place place = Place::Here()) noexcept {
    return Modify(order, place, [value](T) { return value; });
  }
  bool compare_exchange_strong(T& expected, T value, std::memory_order order = kStrongest,
                               Place place = Place::Here()) noexcept {
    return compare_exchange_strong(expected, value, order, Simulator::OrderOfFailure(order), place);
  }
  bool compare_exchange_strong(T& expected, T value, std::memory_order success,
                               std::memory_order failure, Place place = Place::Here()) noexcept {
    Simulator::Step(StepKind::kModify, &value_, place);
    const uint64_t newest = Bits(value_);
    if (newest != Bits(expected)) {
      expected = Value(Simulator::LoadOther(&value_, newest, Bits(expected), failure));
      return false;
    }
    Simulator::Modify(&value_, newest, Bits(value), success);
    value_ = value;
    return true;
  }
  bool compare_exchange_weak(T& expected, T value, std::memory_order order = kStrongest,
                             Place place = Place::Here()) noexcept {
    return compare_exchange_weak(expected, value, order, Simulator::OrderOfFailure(order), place);
  }
  bool compare_exchange_weak(T& expected, T value, std::memory_order success,
                             std::memory_order failure, Place place = Place::Here()) noexcept {
    if (Simulator::Fails(faults::kWeakExchange)) return false;
    return compare_exchange_strong(expected, value, success, failure, place);
  }

  T fetch_add(T more, std::memory_order order = kStrongest, Place place = Place::Here()) noexcept {
    return Modify(order, place, [more](T old) { return static_cast<T>(old + more); });
  }
  T fetch_sub(T less, std::memory_order order = kStrongest, Place place = Place::Here()) noexcept {
    return Modify(order, place, [less](T old) { return static_cast<T>(old - less); });
  }
  T fetch_or(T bits, std::memory_order order = kStrongest, Place place = Place::Here()) noexcept {
    return Modify(order, place, [bits](T old) { return static_cast<T>(old | bits); });
  }
  T fetch_and(T bits, std::memory_order order = kStrongest, Place place = Place::Here()) noexcept {
    return Modify(order, place, [bits](T old) { return static_cast<T>(old & bits); });
  }

  operator T() const noexcept { return load(); }  // NOLINT: as std::atomic's.
  T operator=(T value) noexcept {
    store(value);
    return value;
  }
  T operator++() noexcept { return fetch_add(1) + 1; }
  T operator++(int) noexcept { return fetch_add(1); }
  T operator--() noexcept { return fetch_sub(1) - 1; }
  T operator--(int) noexcept { return fetch_sub(1); }
  T operator+=(T more) noexcept { return fetch_add(more) + more; }
  T operator-=(T less) noexcept { return fetch_sub(less) - less; }

  // What the kernel would find here.
  T newest() const noexcept { return value_; }

 private:
  static uint64_t Bits(T value) noexcept {
    uint64_t bits = 0;
    std::memcpy(&bits, &value, sizeof(T));
    return bits;
  }
  static T Value(uint64_t bits) noexcept {
    T value;
    std::memcpy(&value, &bits, sizeof(T));
    return value;
  }
  template <typename Change>
  T Modify(std::memory_order order, Place place, Change change) noexcept {
    Simulator::Step(StepKind::kModify, &value_, place);
    const T old = value_;
    const T changed = change(old);
    Simulator::Modify(&value_, Bits(old), Bits(changed), order);
    value_ = changed;
    return old;
  }

  T value_;
};

inline void AtomicThreadFence(std::memory_order order, Place place = Place::Here()) noexcept {
  Simulator::Step(StepKind::kFence, nullptr, place);
  Simulator::Fence(order);
}

}  // namespace bobbin::internal

#endif  // BOBBIN_CORE_INTERNAL_SIMULATED_ATOMIC_H_
