// SPDX-License-Identifier: Apache-2.0

#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>

#include <bobbin/core/check.h>
#include <bobbin/core/internal/fault.h>
#include <bobbin/core/internal/stack_cache.h>

#include "core/src/sanitizer.h"

// Newer than Debian 12's headers; kernel 6.13.
#ifndef MADV_GUARD_INSTALL
#define MADV_GUARD_INSTALL 102
#endif

namespace bobbin::internal {

namespace {

// Slabs grow from small to large, so that a small program reserves little and a million stacks are
// a handful of mappings. The largest is bounded by what a 47-bit address space takes kindly.
constexpr size_t kSlabStacksMin = 64;
constexpr size_t kSlabBytesMin = size_t{16} << 20;  // Where fewer stacks make so much.
constexpr size_t kSlabBytesMax = size_t{64} << 30;

// Of vm.max_map_count, what is left to the rest of the process where every guard splits a mapping.
constexpr size_t kMappingsReserved = 8192;
constexpr size_t kMappingsDefault = 65530;

// Where guards are scarce, stacks of each size that threads ask for; what is reserved has room.
constexpr size_t kSizedGuardsMax = 128;

// How many pages one call of mincore is asked about.
constexpr size_t kMincorePages = 65536;

// How many stacks a carrier takes at once, at most; as many as make the guards cheap.
constexpr size_t kRefillMax = 512;

// How many ranges one process_madvise call is given. They lie on the stack of whoever is about to
// start a new thread, which may be a small one.
constexpr size_t kRangesPerCall = 64;

size_t RoundUp(size_t value, size_t unit) noexcept { return (value + unit - 1) / unit * unit; }

size_t MappingsMax() noexcept {
  size_t value = kMappingsDefault;
  if (std::FILE* const file = std::fopen("/proc/sys/vm/max_map_count", "r")) {
    if (std::fscanf(file, "%zu", &value) != 1) value = kMappingsDefault;
    std::fclose(file);
  }
  return value;
}

// Applies `advice` to `bytes` from `offset` in each stack: in one call for many where the kernel
// takes it, else one by one.
bool AdviseAll(const Stack* stacks, size_t count, size_t offset, size_t bytes,
               int advice) noexcept {
  static const int own_process = static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
  while (count > 0) {
    const size_t batch = std::min(count, kRangesPerCall);
    iovec ranges[kRangesPerCall];
    for (size_t i = 0; i < batch; ++i) ranges[i] = {stacks[i].base + offset, bytes};
    const long done =
        own_process < 0 ? -1 : syscall(SYS_process_madvise, own_process, ranges, batch, advice, 0);
    if (done != static_cast<long>(batch * bytes)) {
      for (size_t i = 0; i < batch; ++i) {
        if (madvise(ranges[i].iov_base, bytes, advice) != 0) return false;
      }
    }
    stacks += batch;
    count -= batch;
  }
  return true;
}

}  // namespace

StackPool::StackPool(const Options& options)
    : page_bytes_(static_cast<size_t>(sysconf(_SC_PAGESIZE))),
      stack_bytes_(std::max(RoundUp(options.stack_bytes, page_bytes_), 4 * page_bytes_)),
      guard_kind_(options.force_mprotect || !ProbeGuardInstall() ? GuardKind::kMprotect
                                                                 : GuardKind::kMadvise),
      stacks_max_(guard_kind_ == GuardKind::kMadvise ? std::numeric_limits<size_t>::max()
                  : options.guards_max != 0
                      ? options.guards_max
                      : (std::max(MappingsMax(), 2 * kMappingsReserved) - kMappingsReserved) / 2),
      cached_where_scarce_(options.cached_where_scarce) {}

StackPool::~StackPool() {
  SpinLockHolder hold(lock_);
  for (const Slab& slab : slabs_) {
    sanitizer::StackInUse(slab.base, slab.bytes);
    munmap(slab.base, slab.bytes);
  }
}

StackPool& StackPool::OfClass(size_t size_class) noexcept {
  if (size_class == 0) return *this;
  Atomic<StackPool*>& place = others_[size_class - 1];
  if (StackPool* const pool = place.load()) return *pool;
  SpinLockHolder hold(lock_);
  if (StackPool* const pool = place.load()) return *pool;
  // Idle ones are for every carrier where there are few.
  made_.push_back(std::make_unique<StackPool>(Options{.stack_bytes = kSizeMin << (size_class - 1),
                                                      .force_mprotect = is_limited(),
                                                      .guards_max = kSizedGuardsMax,
                                                      .cached_where_scarce = 0}));
  place.store(made_.back().get());
  return *made_.back();
}

bool StackPool::TryClaim() noexcept {
  const size_t startable = is_exhausted() ? carved() : stacks_max_;
  if (claimed_.fetch_add(1) < startable) return true;
  claimed_.fetch_sub(1);
  return false;
}

bool StackPool::ProbeGuardInstall() const noexcept {
  void* const page =
      mmap(nullptr, page_bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return false;
  const bool works = madvise(page, page_bytes_, MADV_GUARD_INSTALL) == 0;
  munmap(page, page_bytes_);
  return works;
}

size_t StackPool::carved() noexcept {
  SpinLockHolder hold(lock_);
  return carved_;
}

std::vector<StackPool::Slab> StackPool::CarvedRanges() {
  SpinLockHolder hold(lock_);
  std::vector<Slab> ranges = slabs_;
  if (!ranges.empty()) ranges.back().bytes = static_cast<size_t>(carve_next_ - ranges.back().base);
  return ranges;
}

StackPool::Usage StackPool::Measure() {
  Usage usage;
  const size_t stack_pages = stack_bytes_ / page_bytes_;
  // Whole stacks at a time. The slabs stay mapped as long as the pool lives.
  const size_t batch_bytes = std::max(kMincorePages / stack_pages, size_t{1}) * stack_bytes_;
  std::vector<unsigned char> is_resident(batch_bytes / page_bytes_);
  for (const Slab& range : CarvedRanges()) {
    usage.reserved_bytes += range.bytes;
    for (size_t done = 0; done < range.bytes; done += batch_bytes) {
      const size_t bytes = std::min(batch_bytes, range.bytes - done);
      if (mincore(range.base + done, bytes, is_resident.data()) != 0) continue;
      for (size_t first = 0; first < bytes / page_bytes_; first += stack_pages) {
        // The lowest page is the guard. Stacks grow downwards: the first page is the deepest one.
        const unsigned char* const guard = is_resident.data() + first;
        const unsigned char* const end = guard + stack_pages;
        const unsigned char* const deepest =
            std::find_if(guard + 1, end, [](unsigned char page) { return (page & 1) != 0; });
        const auto pages = static_cast<size_t>(
            std::count_if(deepest, end, [](unsigned char page) { return (page & 1) != 0; }));
        usage.resident_bytes += pages * page_bytes_;
        usage.deepest_bytes =
            std::max(usage.deepest_bytes, static_cast<size_t>(end - deepest) * page_bytes_);
      }
    }
  }
  return usage;
}

size_t StackPool::Take(size_t count, std::vector<Stack>& out) noexcept {
  SpinLockHolder hold(lock_);
  const size_t before = out.size();
  for (std::vector<Stack>* const source : {&warm_, &cold_}) {
    while (out.size() - before < count && !source->empty()) {
      out.push_back(source->back());
      source->pop_back();
    }
  }
  if (out.size() - before < count) Carve(count - (out.size() - before), out);
  if (out.size() == before && count != 0) {
    is_exhausted_.store(true, std::memory_order_relaxed);  // relaxed: a hint.
  }
  return out.size() - before;
}

void StackPool::Give(size_t count, std::vector<Stack>& stacks, bool is_cold) noexcept {
  const Stack* const first = stacks.data() + (stacks.size() - count);
  // The guards stay: the pages above them go.
  if (is_cold) {
    AdviseAll(first, count, page_bytes_, stack_bytes_ - page_bytes_, MADV_DONTNEED);
  }
  SpinLockHolder hold(lock_);
  std::vector<Stack>& target = is_cold ? cold_ : warm_;
  target.insert(target.end(), first, first + count);
  stacks.resize(stacks.size() - count);
}

bool StackPool::AddSlab() noexcept {
  const size_t stacks_min = std::clamp(kSlabBytesMin / stack_bytes_, size_t{1}, kSlabStacksMin);
  size_t stacks_wanted =
      std::min(std::max(stacks_min, carved_), std::max(kSlabBytesMax / stack_bytes_, size_t{1}));
  size_t bytes = 0;
  void* base = MAP_FAILED;
  // Where address space is scarce, a smaller one may still fit.
  for (; base == MAP_FAILED && stacks_wanted > 0; stacks_wanted /= 2) {
    bytes = stacks_wanted * stack_bytes_;
    base = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
  }
  if (base == MAP_FAILED) return false;
  // A huge page under a stack would make each shallow one cost a hundred times its due.
  madvise(base, bytes, MADV_NOHUGEPAGE);
  sanitizer::StackInUse(static_cast<char*>(base), bytes);  // Whatever was there before.
  slabs_.push_back({static_cast<char*>(base), bytes});
  carve_next_ = static_cast<char*>(base);
  carve_end_ = carve_next_ + bytes;
  return true;
}

size_t StackPool::Carve(size_t count, std::vector<Stack>& out) noexcept {
  count = std::min(count, stacks_max_ - carved_);
  const size_t before = out.size();
  while (out.size() - before < count) {
    if (carve_next_ == carve_end_ && !AddSlab()) break;
    const size_t available = static_cast<size_t>(carve_end_ - carve_next_) / stack_bytes_;
    const size_t batch = std::min(count - (out.size() - before), available);
    const size_t first = out.size();
    for (size_t i = 0; i < batch; ++i) out.push_back(Stack{carve_next_ + i * stack_bytes_});
    if (!InstallGuards(out.data() + first, batch)) {
      out.resize(first);
      break;
    }
    carve_next_ += batch * stack_bytes_;
    carved_ += batch;
  }
  return out.size() - before;
}

bool StackPool::InstallGuards(const Stack* stacks, size_t count) noexcept {
  if (guard_kind_ == GuardKind::kMadvise) {
    return AdviseAll(stacks, count, 0, page_bytes_, MADV_GUARD_INSTALL);
  }
  for (size_t i = 0; i < count; ++i) {
    if (mprotect(stacks[i].base, page_bytes_, PROT_NONE) != 0) return false;
  }
  return true;
}

StackCache::~StackCache() {
  pool_.Give(cold_.size(), cold_, false);
  pool_.Give(stacks_.size(), stacks_, false);
}

void StackCache::GiveOutOfLine(Stack stack) noexcept { Give(stack); }

bool StackCache::Refill() noexcept {
  if (HasFault(faults::kNoStack)) return false;
  // Few at first, then as many as make the guards cheap.
  const size_t wanted = std::clamp<size_t>(taken_, 8, kRefillMax);
  pool_.Take(std::clamp<size_t>(wanted, 1, std::max<size_t>(cached_max_, 1)), stacks_);
  taken_ += stacks_.size();
  low_water_ = 0;
  return !stacks_.empty();
}

void StackCache::EndPeriod(size_t share) {
  // The bottom of the cache is what nobody needed. Half of it goes, as a rule, so that a load that
  // comes and goes in waves keeps what it will need again.
  const size_t cold = std::min(low_water_, stacks_.size()) / share;
  cold_.insert(cold_.end(), stacks_.begin(), stacks_.begin() + static_cast<ptrdiff_t>(cold));
  stacks_.erase(stacks_.begin(), stacks_.begin() + static_cast<ptrdiff_t>(cold));
  low_water_ = stacks_.size();
}

bool StackCache::Trim(size_t batch) {
  pool_.Give(std::min(batch, cold_.size()), cold_, true);
  return !cold_.empty();
}

}  // namespace bobbin::internal
