// SPDX-License-Identifier: Apache-2.0
//
// SimulatedStd: has a test that was written for real threads use the atomics of the simulation.
// Included by force, before everything else.
//
// The simulation would otherwise not see what the test orders with a flag of its own. Whatever of
// the standard library names its atomics is included before the name changes its meaning.

#ifndef BOBBIN_TESTS_SIMULATION_SIMULATED_STD_H_
#define BOBBIN_TESTS_SIMULATION_SIMULATED_STD_H_

#include <atomic>
#include <barrier>
#include <condition_variable>
#include <future>
#include <latch>
#include <memory>
#include <mutex>
#include <random>
#include <semaphore>
#include <shared_mutex>
#include <stop_token>
#include <thread>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

#include <bobbin/core/internal/atomic.h>

namespace std {
template <typename T>
using simulated_atomic = bobbin::internal::Atomic<T>;
}  // namespace std

#define atomic simulated_atomic

#endif  // BOBBIN_TESTS_SIMULATION_SIMULATED_STD_H_
