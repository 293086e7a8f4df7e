// SPDX-License-Identifier: Apache-2.0

#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <limits>
#include <utility>
#include <vector>

#include "fmt/format.h"

#include <bobbin/core/check.h>
#include <bobbin/core/internal/current.h>
#include <bobbin/core/internal/simulator.h>
#include <bobbin/core/internal/task.h>

#include "core/src/context.h"
#include "core/src/exception_state.h"
#include "core/src/sanitizer.h"

namespace bobbin::internal {

namespace {

constexpr size_t kThreadsMax = 32;
constexpr size_t kStackBytes = size_t{1} << 20;
constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// How many stores of a word are remembered. Two show every reordering of a pair; with more, a
// reader can be late by several.
constexpr size_t kStoresKept = 4;

// What a step and a look at the clock take.
constexpr int64_t kStepNanoseconds = 20;
constexpr int64_t kClockNanoseconds = 1'000;
// How far the clock may jump although somebody could run: not so far that what is bounded by
// seconds ends by it.
constexpr int64_t kJumpNanoseconds = 50'000'000;
// After so many steps in a row a thread has to let another one go on; alone, it makes time pass.
constexpr uint32_t kRunStepsMax = 2'000;
constexpr int64_t kSpinNanoseconds = 1'000'000;
// So many turns of a spin, while a failure is being reported, are for a lock that nobody gives up.
constexpr int kReportPausesMax = 10'000;

// How many steps of each thread a report shows.
constexpr size_t kEventsKept = 24;

// What a thread knows of: of each thread, everything up to that number.
class Clock {
 public:
  uint32_t& operator[](size_t thread) noexcept { return known_[thread]; }
  uint32_t operator[](size_t thread) const noexcept { return known_[thread]; }
  void Join(const Clock& other, size_t threads) noexcept {
    for (size_t i = 0; i < threads; ++i) known_[i] = std::max(known_[i], other.known_[i]);
  }

 private:
  std::array<uint32_t, kThreadsMax> known_{};
};

// One store of a word.
struct Stored {
  uint64_t value = 0;
  size_t writer = 0;
  uint32_t at = 0;          // The writer's own number; 0: before the simulation met the word.
  bool is_ordered = false;  // Sequentially consistent.
  Clock released;           // What an acquire of it learns.
  Clock seen;               // When each thread first saw it or a later one.
};

struct Location {
  std::array<Stored, kStoresKept> stores;
  size_t newest = 0;
  size_t count = 0;
  Clock touched;  // When each thread touched it last.

  Stored& Back(size_t steps) noexcept {
    return stores[(newest + kStoresKept - steps) % kStoresKept];
  }
};

struct PlainLocation {
  size_t writer = 0;
  uint32_t written_at = 0;
  Place written;
  Clock read_at;
  std::array<Place, kThreadsMax> read;
};

// From addresses to numbers; nothing is taken out, but a number may be "none".
class AddressTable {
 public:
  static constexpr int32_t kNone = -1;
  static constexpr int32_t kDead = -2;

  int32_t* Find(const void* at) noexcept {
    for (size_t i = Hash(at);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].at == at) return &slots_[i].number;
      if (slots_[i].at == nullptr) return nullptr;
    }
  }
  int32_t& FindOrAdd(const void* at) {
    if (2 * used_ >= slots_.size()) Grow();
    for (size_t i = Hash(at);; i = (i + 1) & (slots_.size() - 1)) {
      if (slots_[i].at == at) return slots_[i].number;
      if (slots_[i].at != nullptr) continue;
      slots_[i] = {at, kNone};
      ++used_;
      return slots_[i].number;
    }
  }

 private:
  struct Slot {
    const void* at = nullptr;
    int32_t number = kNone;
  };
  size_t Hash(const void* at) const noexcept {
    const uint64_t mixed = (reinterpret_cast<uintptr_t>(at) >> 2) * 0x9e3779b97f4a7c15;
    return static_cast<size_t>(mixed >> 32) & (slots_.size() - 1);
  }
  void Grow() {
    std::vector<Slot> old(2 * slots_.size());
    old.swap(slots_);
    used_ = 0;
    for (const Slot& slot : old) {
      if (slot.at != nullptr) FindOrAdd(slot.at) = slot.number;
    }
  }

  std::vector<Slot> slots_ = std::vector<Slot>(2048);
  size_t used_ = 0;
};

// Memory orders. Whom each one pairs with is the business of the code that is simulated.
bool Acquires(std::memory_order order) noexcept {
  // Pairs with whatever the store of the simulated code released.
  return order == std::memory_order_acquire || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}
bool Releases(std::memory_order order) noexcept {
  // Pairs with whatever the load of the simulated code acquires.
  return order == std::memory_order_release || order == std::memory_order_acq_rel ||
         order == std::memory_order_seq_cst;
}

std::string_view NameOf(StepKind kind) {
  switch (kind) {
    case StepKind::kLoad:
      return "load";
    case StepKind::kStore:
      return "store";
    case StepKind::kModify:
      return "modify";
    case StepKind::kFence:
      return "fence";
    case StepKind::kFutexWait:
      return "futex wait";
    case StepKind::kFutexWake:
      return "futex wake";
    case StepKind::kPause:
      return "pause";
    case StepKind::kClock:
      return "clock";
    case StepKind::kStart:
      return "start a thread";
    case StepKind::kJoin:
      return "join a thread";
    case StepKind::kEnd:
      return "end";
  }
  return "?";
}

// "core/src/event.cc:12" without the way to the project.
std::string TextOf(Place place) {
  std::string_view file = place.file == nullptr ? "?" : place.file;
  for (std::string_view root : {"/core/", "/sched/", "/io/", "/db/", "/tests/", "/docs/"}) {
    const size_t at = file.rfind(root);
    if (at != file.npos) {
      file.remove_prefix(at + 1);
      break;
    }
  }
  return fmt::format("{}:{}", file, place.line);
}

struct Event {
  uint64_t step = 0;
  size_t thread = 0;
  uint64_t virtual_thread = 0;
  StepKind kind = StepKind::kPause;
  const void* at = nullptr;
  Place place;
  uint64_t before = 0;
  uint64_t after = 0;
  bool has_value = false;
  bool is_old = false;  // A load that did not answer with the newest store.
};

uint64_t RunningVirtualThread() noexcept {
  const Thread* const thread = CurrentOrNull();
  if (thread == nullptr || thread->role() != Role::kVirtual) return 0;
  return static_cast<const Task*>(thread)->id();
}

// Stacks are used again by later runs.
std::vector<char*>& FreeStacks() {
  static std::vector<char*>* const stacks = std::make_unique<std::vector<char*>>().release();
  return *stacks;
}

char* TakeStack() {
  std::vector<char*>& free = FreeStacks();
  if (!free.empty()) {
    char* const stack = free.back();
    free.pop_back();
    sanitizer::StackInUse(stack, kStackBytes);
    return stack;
  }
  void* const stack = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  BOBBIN_CHECK(stack != MAP_FAILED, "no memory for the stack of a simulated OS thread");
  return static_cast<char*>(stack);
}

}  // namespace

class SimulatedThread {
 public:
  enum class State : uint8_t { kFree, kReady, kBlocked, kEnded };

  struct ExitCall {
    void (*function)(void*);
    void* argument;
  };

  static void Enter(context::Arrival arrival) noexcept;

  size_t id = 0;
  std::string name;
  State state = State::kFree;
  absl::AnyInvocable<void() &&> body;
  std::vector<ExitCall> exit_calls;
  bool is_detached = false;
  int joiner = -1;

  // While it is blocked.
  const void* word = nullptr;
  int64_t deadline = kNever;
  bool was_woken = false;
  Place place;  // Of its last step.
  std::array<Event, kEventsKept> events;
  size_t event = 0;  // The last one.

  // What it knows.
  Clock clock;
  Clock to_acquire;  // By its next acquire fence.
  Clock released;    // By its last release fence.

  // What an OS thread has of its own.
  char* stack = nullptr;
  void* context = nullptr;
  Thread* current = nullptr;
  ExceptionGlobals exceptions;
  int error = 0;
  // For the address sanitizer: the stack it stands on, which may be a virtual thread's.
  const void* stack_base = nullptr;
  size_t stack_bytes = 0;
  void* fake_stack = nullptr;
};

struct Simulator::State {
  std::array<SimulatedThread, kThreadsMax> threads;
  size_t threads_used = 0;
  SimulatedThread caller;
  SimulatedThread* running = nullptr;
  SimulatedThread* left = nullptr;  // Who switched last.
  uint32_t run_steps = 0;           // Of the running thread, in a row.
  int report_pauses = 0;
  std::vector<int> candidates;

  AddressTable table;
  std::vector<std::unique_ptr<Location>> locations;
  std::vector<int32_t> free_locations;
  AddressTable plain_table;
  std::vector<std::unique_ptr<PlainLocation>> plain;
  Clock ordered;  // What the sequentially consistent fences know.

  Event& last_event() noexcept { return running->events[running->event]; }
  // The word's history; null if it has ended its life.
  Location* Find(const void* at, uint64_t newest) {
    int32_t& number = table.FindOrAdd(at);
    if (number >= 0) return locations[static_cast<size_t>(number)].get();
    if (number == AddressTable::kDead) return nullptr;
    if (free_locations.empty()) {
      number = static_cast<int32_t>(locations.size());
      locations.push_back(std::make_unique<Location>());
    } else {
      number = free_locations.back();
      free_locations.pop_back();
    }
    Location& location = *locations[static_cast<size_t>(number)];
    location.newest = 0;
    location.count = 1;
    location.touched = Clock();
    location.stores[0] = Stored();
    location.stores[0].value = newest;
    return &location;
  }
  PlainLocation& FindPlain(const void* at) {
    int32_t& number = plain_table.FindOrAdd(at);
    if (number < 0) {
      number = static_cast<int32_t>(plain.size());
      plain.push_back(std::make_unique<PlainLocation>());
    }
    return *plain[static_cast<size_t>(number)];
  }
  // What has just been arrived from, and stood where.
  void Arrive(SimulatedThread& self) noexcept {
#if defined(__SANITIZE_ADDRESS__)
    __sanitizer_finish_switch_fiber(self.fake_stack, &left->stack_base, &left->stack_bytes);
#endif
    static_cast<void>(self);
  }
};

// Marks the length of a function.
class Simulator::Inside {
 public:
  explicit Inside(Simulator& simulator) noexcept
      : simulator_(simulator), before_(std::exchange(simulator.is_inside_, true)) {}
  Inside(const Inside&) = delete;
  Inside& operator=(const Inside&) = delete;
  ~Inside() { simulator_.is_inside_ = before_; }

 private:
  Simulator& simulator_;
  const bool before_;
};

Simulator::Simulator(Chooser& chooser, const Options& options)
    : chooser_(chooser),
      options_(options),
      state_(std::make_unique<State>()),
      now_(options.starts_at),
      next_deadline_(kNever) {
  state_->candidates.reserve(kThreadsMax);
}

Simulator::~Simulator() = default;

// --- Threads.

void SimulatedThread::Enter(context::Arrival arrival) noexcept {
  context::StoreLeaver(arrival);
  __asm__ __volatile__(".cfi_undefined rip");  // Whoever walks this stack stops here.
  Simulator& simulator = *Simulator::Active();
  SimulatedThread& self = *simulator.state_->running;
  simulator.state_->Arrive(self);
  {
    absl::AnyInvocable<void()&&> body = std::move(self.body);
    std::move(body)();
  }
  while (!self.exit_calls.empty()) {
    const ExitCall call = self.exit_calls.back();
    self.exit_calls.pop_back();
    call.function(call.argument);
  }
  simulator.EndRunning();
}

int Simulator::StartThread(std::string_view name, absl::AnyInvocable<void() &&> body) {
  SimulatedThread& made = MakeThread(name, std::move(body));
  if (state_->running != nullptr) TakeStep(StepKind::kStart, &made, Place::Here());
  return static_cast<int>(made.id);
}

SimulatedThread& Simulator::MakeThread(std::string_view name, absl::AnyInvocable<void() &&> body) {
  const Inside inside(*this);
  SimulatedThread* made = nullptr;
  for (size_t i = 0; i < kThreadsMax && made == nullptr; ++i) {
    if (state_->threads[i].state == SimulatedThread::State::kFree) made = &state_->threads[i];
  }
  if (made == nullptr) Fail("a simulation cannot have so many OS threads");
  made->id = static_cast<size_t>(made - state_->threads.data());
  state_->threads_used = std::max(state_->threads_used, made->id + 1);
  made->name = name;
  made->body = std::move(body);
  made->is_detached = false;
  made->joiner = -1;
  made->current = nullptr;
  made->exceptions = {};
  made->fake_stack = nullptr;
  if (made->stack == nullptr) made->stack = TakeStack();
  made->stack_base = made->stack;
  made->stack_bytes = kStackBytes;
  made->context = context::Make(made->stack + kStackBytes, kStackBytes, &SimulatedThread::Enter);

  // What its starter knows, it knows.
  SimulatedThread* const self = state_->running;
  const uint32_t own = made->clock[made->id] + 1;
  if (self != nullptr) {
    made->clock.Join(self->clock, state_->threads_used);
    ++self->clock[self->id];
  }
  made->clock[made->id] = own;
  made->state = SimulatedThread::State::kReady;
  return *made;
}

void Simulator::JoinThread(int id) {
  SimulatedThread& thread = state_->threads[static_cast<size_t>(id)];
  TakeStep(StepKind::kJoin, &thread, Place::Here());
  if (thread.state != SimulatedThread::State::kEnded) {
    thread.joiner = static_cast<int>(state_->running->id);
    BlockRunning(&thread, kNever);
  }
  state_->running->clock.Join(thread.clock, state_->threads_used);
  thread.state = SimulatedThread::State::kFree;
}

void Simulator::DetachThread(int id) noexcept {
  SimulatedThread& thread = state_->threads[static_cast<size_t>(id)];
  if (thread.state == SimulatedThread::State::kEnded) {
    thread.state = SimulatedThread::State::kFree;
  } else {
    thread.is_detached = true;
  }
}

void Simulator::AtThreadExit(void (*function)(void*), void* argument) {
  const Inside inside(*this);
  state_->running->exit_calls.push_back({function, argument});
}

std::span<char> Simulator::RunningStack() const noexcept {
  return {state_->running->stack, kStackBytes};
}

size_t Simulator::CountThreads() const noexcept {
  return static_cast<size_t>(
      std::count_if(state_->threads.begin(), state_->threads.end(), [](const auto& thread) {
        return thread.state == SimulatedThread::State::kReady ||
               thread.state == SimulatedThread::State::kBlocked;
      }));
}

void Simulator::EndRunning() noexcept {
  SimulatedThread& self = *state_->running;
  TakeStep(StepKind::kEnd, nullptr, Place::Here());
  self.state = self.is_detached ? SimulatedThread::State::kFree : SimulatedThread::State::kEnded;
  if (self.joiner >= 0) {
    state_->threads[static_cast<size_t>(self.joiner)].state = SimulatedThread::State::kReady;
  }
  if (CountThreads() == 0) ReturnToCaller();
  Reschedule(Switch::kWaits);
}

void Simulator::Run(absl::AnyInvocable<void()> body) {
  BOBBIN_CHECK(active_ == nullptr, "one simulation inside another");
  active_ = this;
  state_->running = nullptr;
  StartThread("main", std::move(body));
  state_->running = &state_->caller;
  SwitchTo(state_->threads[0]);
  active_ = nullptr;
  // Threads that were abandoned may still be referred to from their stacks.
  if (has_failed()) return;
  for (SimulatedThread& thread : state_->threads) {
    if (thread.stack != nullptr) FreeStacks().push_back(std::exchange(thread.stack, nullptr));
  }
}

void Simulator::SwitchTo(SimulatedThread& next) noexcept {
  SimulatedThread& self = *state_->running;
  ExceptionGlobals& exceptions = *ExceptionGlobals::OfThisThread();
  self.current = CurrentOrNull();
  self.exceptions = exceptions;
  self.error = errno;
  SetCurrent(next.current);
  exceptions = next.exceptions;
  errno = next.error;
  state_->left = &self;
  state_->running = &next;
  state_->run_steps = 0;
  sanitizer::BeforeSwitch(&self.fake_stack, static_cast<const char*>(next.stack_base),
                          next.stack_bytes);
  context::SwitchTo(next.context, &self.context);
  state_->Arrive(self);
}

void Simulator::ReturnToCaller() noexcept { SwitchTo(state_->caller); }

// --- Who goes on.

void Simulator::TakeStep(StepKind kind, const void* at, Place place) noexcept {
  if (is_direct()) return;
  SimulatedThread& self = *state_->running;
  ++steps_;
  ++self.clock[self.id];
  self.place = place;
  if (steps_ > options_.steps_max) {
    Fail(fmt::format("no end after {} steps: threads run, and get nowhere", options_.steps_max));
  }
  now_ += kStepNanoseconds;
  if (next_deadline_ != kNever && next_deadline_ - now_ < kJumpNanoseconds &&
      next_deadline_ > now_ && chooser_.ChooseJump()) {
    now_ = next_deadline_;
  }
  if (next_deadline_ <= now_) Expire();
  if (kind == StepKind::kPause) {
    Yielded(self);
    Reschedule(Switch::kYields);
  } else if (kind != StepKind::kEnd) {
    Reschedule(Switch::kPreempts);
  }
  self.event = (self.event + 1) % kEventsKept;
  Event& event = self.events[self.event];
  event = Event();
  event.step = steps_;
  event.thread = self.id;
  event.virtual_thread = RunningVirtualThread();
  event.kind = kind;
  event.at = at;
  event.place = place;
}

void Simulator::Reschedule(Switch kind) noexcept {
  SimulatedThread& self = *state_->running;
  while (true) {
    std::vector<int>& candidates = state_->candidates;
    candidates.clear();
    for (size_t i = 1; i < state_->threads_used; ++i) {
      const size_t number = (self.id + i) % state_->threads_used;
      if (state_->threads[number].state == SimulatedThread::State::kReady) {
        candidates.push_back(static_cast<int>(number));
      }
    }
    if (kind == Switch::kPreempts && ++state_->run_steps > kRunStepsMax) {
      Yielded(self);
      kind = Switch::kYields;
    }
    if (kind != Switch::kWaits && candidates.empty()) {
      // Alone, whoever spins waits for the time.
      if (kind == Switch::kPreempts) return;
      state_->run_steps = 0;
      now_ += kSpinNanoseconds;
      if (next_deadline_ <= now_) Expire();
      return;
    }
    if (!candidates.empty()) {
      if (kind == Switch::kPreempts) {
        candidates.insert(candidates.begin(), static_cast<int>(self.id));
      }
      size_t index = 0;
      if (candidates.size() > 1) {
        const Inside inside(*this);
        index = chooser_.ChooseThread(candidates, kind);
      }
      SimulatedThread& next = state_->threads[static_cast<size_t>(candidates[index])];
      if (&next != &self) SwitchTo(next);
      return;
    }

    // Nobody can run: it is time for the next deadline.
    if (next_deadline_ == kNever) Fail("a deadlock: nobody can go on, and no deadline will come");
    now_ = std::max(now_, next_deadline_);
    Expire();
    if (self.state == SimulatedThread::State::kReady) return;
  }
}

void Simulator::Yielded(const SimulatedThread& thread) noexcept {
  const Inside inside(*this);
  chooser_.HasYielded(static_cast<int>(thread.id));
}

void Simulator::Expire() noexcept {
  next_deadline_ = kNever;
  for (size_t i = 0; i < state_->threads_used; ++i) {
    SimulatedThread& thread = state_->threads[i];
    if (thread.state != SimulatedThread::State::kBlocked) continue;
    if (thread.deadline <= now_) {
      thread.state = SimulatedThread::State::kReady;
    } else {
      next_deadline_ = std::min(next_deadline_, thread.deadline);
    }
  }
}

void Simulator::BlockRunning(const void* word, int64_t deadline) noexcept {
  SimulatedThread& self = *state_->running;
  self.word = word;
  self.deadline = deadline;
  self.was_woken = false;
  self.state = SimulatedThread::State::kBlocked;
  next_deadline_ = std::min(next_deadline_, deadline);
  Reschedule(Switch::kWaits);
  self.word = nullptr;
}

bool Simulator::WaitOn(const void* word, int64_t deadline) noexcept {
  if (is_reporting_) ReturnToCaller();
  if (deadline <= now_) return false;
  BlockRunning(word, deadline);
  return state_->running->was_woken;
}

void Simulator::WakeOne(const void* word) noexcept {
  for (size_t i = 0; i < state_->threads_used; ++i) {
    SimulatedThread& thread = state_->threads[i];
    if (thread.state != SimulatedThread::State::kBlocked || thread.word != word) continue;
    thread.was_woken = true;
    thread.state = SimulatedThread::State::kReady;
    return;
  }
}

void Simulator::Pause(Place place) noexcept {
  if (active_ == nullptr) return;
  if (active_->is_reporting_ && ++active_->state_->report_pauses > kReportPausesMax) {
    active_->ReturnToCaller();
  }
  active_->TakeStep(StepKind::kPause, nullptr, place);
}

int64_t Simulator::Now() noexcept {
  if (!is_reporting_) {
    now_ += kClockNanoseconds;
    TakeStep(StepKind::kClock, nullptr, Place::Here());
  }
  return now_;
}

bool Simulator::ChooseFault(FaultPoint point) noexcept {
  return !is_direct() && chooser_.ChooseFault(point.name);
}

// --- Memory.

std::memory_order Simulator::OrderOfFailure(std::memory_order success) noexcept {
  // Pairs with what the success pairs with, without the release.
  if (success == std::memory_order_acq_rel) return std::memory_order_acquire;
  // relaxed: there is nothing left of a release.
  if (success == std::memory_order_release) return std::memory_order_relaxed;
  return success;
}

uint64_t Simulator::LoadFrom(const void* at, uint64_t newest, std::memory_order order,
                             const uint64_t* unlike) noexcept {
  if (is_direct()) return newest;
  const Inside inside(*this);
  SimulatedThread& self = *state_->running;
  Location* const location = state_->Find(at, newest);
  if (location == nullptr) Fail("a word is read after the end of its life");
  const size_t threads = state_->threads_used;

  // Back to the last store that this thread knows of, or has seen, or must see.
  size_t choices = 1;
  for (; choices < location->count; ++choices) {
    const Stored& stored = location->Back(choices - 1);
    if (self.clock[stored.writer] >= stored.at) break;
    if (stored.is_ordered && order == std::memory_order_seq_cst) break;
    bool is_seen = false;
    for (size_t i = 0; i < threads && !is_seen; ++i) {
      is_seen = stored.seen[i] != 0 && stored.seen[i] <= self.clock[i];
    }
    if (is_seen) break;
  }
  size_t back = choices == 1 ? 0 : chooser_.ChooseRead(choices);
  if (unlike != nullptr && location->Back(back).value == *unlike) back = 0;
  Stored& stored = location->Back(back);
  if (stored.seen[self.id] == 0) stored.seen[self.id] = self.clock[self.id];
  location->touched[self.id] = self.clock[self.id];
  (Acquires(order) ? self.clock : self.to_acquire).Join(stored.released, threads);

  Event& event = state_->last_event();
  event.after = stored.value;
  event.has_value = true;
  event.is_old = back != 0;
  return stored.value;
}

void Simulator::StoreTo(const void* at, uint64_t newest, uint64_t value, std::memory_order order,
                        bool is_modify) noexcept {
  if (is_direct()) return;
  const Inside inside(*this);
  SimulatedThread& self = *state_->running;
  Location* const location = state_->Find(at, newest);
  if (location == nullptr) Fail("a word is written after the end of its life");
  const size_t threads = state_->threads_used;
  const Stored& last = location->Back(0);
  Clock released = Releases(order) ? self.clock : self.released;
  if (is_modify) {
    (Acquires(order) ? self.clock : self.to_acquire).Join(last.released, threads);
    if (Releases(order)) released = self.clock;
    // It continues the release that it has read from.
    released.Join(last.released, threads);
  }

  location->newest = (location->newest + 1) % kStoresKept;
  location->count = std::min(location->count + 1, kStoresKept);
  Stored& stored = location->Back(0);
  stored.value = value;
  stored.writer = self.id;
  stored.at = self.clock[self.id];
  stored.is_ordered = order == std::memory_order_seq_cst;
  stored.released = released;
  stored.seen = Clock();
  stored.seen[self.id] = self.clock[self.id];
  location->touched[self.id] = self.clock[self.id];
  if (stored.is_ordered) state_->ordered[self.id] = self.clock[self.id];

  Event& event = state_->last_event();
  event.before = newest;
  event.after = value;
  event.has_value = true;
  // What follows is not part of what was released.
  ++self.clock[self.id];
}

void Simulator::FenceHere(std::memory_order order) noexcept {
  if (is_direct()) return;
  SimulatedThread& self = *state_->running;
  const size_t threads = state_->threads_used;
  if (Acquires(order)) self.clock.Join(self.to_acquire, threads);
  if (order == std::memory_order_seq_cst) {
    self.clock.Join(state_->ordered, threads);
    state_->ordered.Join(self.clock, threads);
  }
  if (Releases(order)) self.released = self.clock;
  ++self.clock[self.id];
}

void Simulator::Forget(const void* at) noexcept {
  const Inside inside(*this);
  int32_t* const number = state_->table.Find(at);
  if (number == nullptr) return;
  if (*number >= 0) state_->free_locations.push_back(*number);
  *number = AddressTable::kNone;
}

void Simulator::Bury(const void* at) noexcept {
  if (is_direct()) return;
  const Inside inside(*this);
  int32_t& number = state_->table.FindOrAdd(at);
  if (number == AddressTable::kDead) return;
  if (number >= 0) {
    const SimulatedThread& self = *state_->running;
    const Clock& touched = state_->locations[static_cast<size_t>(number)]->touched;
    for (size_t i = 0; i < state_->threads_used; ++i) {
      if (touched[i] <= self.clock[i]) continue;
      Fail(fmt::format("a word's life ends while nothing orders that after its last use by \"{}\"",
                       state_->threads[i].name));
    }
    state_->free_locations.push_back(number);
  }
  number = AddressTable::kDead;
}

void Simulator::BeginPlain(const void* at, Place place) noexcept {
  const Inside inside(*this);
  const SimulatedThread& self = *state_->running;
  PlainLocation& plain = state_->FindPlain(at);
  plain = PlainLocation();
  plain.writer = self.id;
  plain.written_at = self.clock[self.id];
  plain.written = place;
}

void Simulator::CheckPlain(const void* at, bool is_write, Place place) noexcept {
  if (is_direct()) return;
  const Inside inside(*this);
  SimulatedThread& self = *state_->running;
  PlainLocation& plain = state_->FindPlain(at);
  const auto race = [&](size_t other, Place where) {
    Fail(fmt::format("a data race: \"{}\" at {} and \"{}\" at {}, and nothing orders the two",
                     state_->threads[other].name, TextOf(where), self.name, TextOf(place)));
  };
  if (plain.written_at > self.clock[plain.writer]) race(plain.writer, plain.written);
  if (!is_write) {
    plain.read_at[self.id] = self.clock[self.id];
    plain.read[self.id] = place;
    return;
  }
  for (size_t i = 0; i < state_->threads_used; ++i) {
    if (plain.read_at[i] > self.clock[i]) race(i, plain.read[i]);
  }
  plain.writer = self.id;
  plain.written_at = self.clock[self.id];
  plain.written = place;
}

// --- Failures.

std::string Simulator::Describe(std::string_view what) const {
  std::string text =
      fmt::format("{}\nthe threads, at step {}, {} ns:\n", what, steps_, now_ - options_.starts_at);
  for (size_t i = 0; i < state_->threads_used; ++i) {
    const SimulatedThread& thread = state_->threads[i];
    if (thread.state == SimulatedThread::State::kFree) continue;
    std::string_view state = "has ended";
    if (thread.state == SimulatedThread::State::kReady) {
      state = &thread == state_->running ? "runs" : "could run";
    } else if (thread.state == SimulatedThread::State::kBlocked) {
      state = thread.deadline == kNever ? "waits" : "waits, also for the time";
    }
    text += fmt::format("  {} \"{}\": {}, last seen at {}\n", i, thread.name, state,
                        TextOf(thread.place));
  }
  std::vector<Event> events;
  for (size_t i = 0; i < state_->threads_used; ++i) {
    for (const Event& event : state_->threads[i].events) {
      if (event.step != 0) events.push_back(event);
    }
  }
  std::sort(events.begin(), events.end(),
            [](const Event& a, const Event& b) { return a.step < b.step; });
  text += "the last steps of each (number, OS thread, virtual thread, what, where):\n";
  for (const Event& event : events) {
    text += fmt::format("  {} {}", event.step, state_->threads[event.thread].name);
    if (event.virtual_thread != 0) text += fmt::format(" v{}", event.virtual_thread);
    text += fmt::format(" {}", NameOf(event.kind));
    if (event.at != nullptr) text += fmt::format(" {}", event.at);
    if (event.has_value && event.kind != StepKind::kLoad) {
      text += fmt::format(" {:#x} -> {:#x}", event.before, event.after);
    } else if (event.has_value) {
      text += fmt::format(" {:#x}{}", event.after, event.is_old ? " (an old one)" : "");
    }
    text += fmt::format(" at {}\n", TextOf(event.place));
  }
  return text;
}

void Simulator::Fail(std::string_view what) {
  if (!is_reporting_) {
    is_reporting_ = true;
    failure_ = Describe(what);
    if (describe_ != nullptr) failure_ += describe_();
  }
  ReturnToCaller();
  __builtin_unreachable();
}

}  // namespace bobbin::internal
