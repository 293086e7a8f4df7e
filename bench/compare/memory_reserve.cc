// SPDX-License-Identifier: Apache-2.0

#include "bench/compare/memory_reserve.h"

#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <cstddef>
#include <new>

namespace bobbin::compare {

namespace {

constexpr size_t kReserveBytes = size_t{64} << 20;
// Those who fail while another one gives the reserve back try again, so often at most.
constexpr int kRetriesMax = 10'000;

std::atomic<void*> reserve{nullptr};
std::atomic<bool> is_spent{false};
std::atomic<int> retries{0};

void OutOfMemory() {
  is_spent = true;
  if (void* const memory = reserve.exchange(nullptr)) {
    ::munmap(memory, kReserveBytes);
  } else if (retries.fetch_add(1) >= kRetriesMax) {
    throw std::bad_alloc();
  } else {
    ::sched_yield();
  }
}

}  // namespace

MemoryReserve::MemoryReserve() {
  is_spent = false;
  retries = 0;
  // Address space is what threads run out of: nobody touches it.
  void* const memory = ::mmap(nullptr, kReserveBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory != MAP_FAILED) reserve = memory;
  std::set_new_handler(&OutOfMemory);
}

MemoryReserve::~MemoryReserve() {
  std::set_new_handler(nullptr);
  if (void* const memory = reserve.exchange(nullptr)) ::munmap(memory, kReserveBytes);
}

bool MemoryReserve::IsSpent() const { return is_spent; }

}  // namespace bobbin::compare
