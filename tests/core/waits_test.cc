// SPDX-License-Identifier: Apache-2.0
//
// The waits of core, one by one, as docs/waits.md lists them.

#include <chrono>
#include <memory>
#include <utility>

#include "gtest/gtest.h"

#include <bobbin/core/barrier.h>
#include <bobbin/core/cancel.h>
#include <bobbin/core/channel.h>
#include <bobbin/core/condition.h>
#include <bobbin/core/event.h>
#include <bobbin/core/future.h>
#include <bobbin/core/guarded.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/once.h>
#include <bobbin/core/select.h>
#include <bobbin/core/semaphore.h>
#include <bobbin/core/shared_mutex.h>
#include <bobbin/core/status.h>
#include <bobbin/core/vthread.h>
#include <bobbin/core/wait_group.h>
#include <bobbin/sched/runtime.h>

#include "tests/support/bobbin_test.h"
#include "tests/support/thread_probe.h"
#include "tests/support/wait_walk.h"

// The stages lock on one thread and unlock in another function: the compiler's analysis has nothing
// to say here.
#if defined(__clang__)
#pragma clang diagnostic ignored "-Wthread-safety-analysis"
#endif

namespace bobbin::test {
namespace {

const Deadline kNever = Deadline::Never();

// A stage with `Object`, made by default, which `prepare` has to make busy.
template <typename Object, typename Prepare, typename Wait, typename Satisfy>
std::function<WaitStage(Runtime&)> With(Prepare prepare, Wait wait, Satisfy satisfy) {
  return [=](Runtime&) -> WaitStage {
    auto object = std::make_shared<Object>();
    prepare(*object);
    return {.wait = [object, wait]() -> absl::Status { return wait(*object); },
            .satisfy = [object, satisfy] { satisfy(*object); }};
  };
}

// A lock that the test's thread holds.
template <typename Lockable, typename Lock, typename Unlock>
std::function<WaitStage(Runtime&)> Locked(Lock lock, Unlock unlock) {
  return With<Lockable>([](Lockable& mutex) { mutex.lock(); },
                        [=](Lockable& mutex) -> absl::Status {
                          BOBBIN_RETURN_IF_ERROR(lock(mutex));
                          unlock(mutex);
                          return absl::OkStatus();
                        },
                        [](Lockable& mutex) { mutex.unlock(); });
}

// A value that the test's thread holds.
struct HeldNumber {
  Guarded<int> number;
  std::unique_ptr<Held<int>> held = std::make_unique<Held<int>>(number.Lock());
};

struct Mailbox {
  Mutex mutex;
  Condition changed;
  bool has_mail = false;
};

struct FullChannel {
  ChannelEnds<int> ends = MakeChannel<int>();
};

std::function<WaitStage(Runtime&)> AtHeldNumber(absl::Status (*wait)(Guarded<int>&)) {
  return With<HeldNumber>([](HeldNumber&) {}, [wait](HeldNumber& all) { return wait(all.number); },
                          [](HeldNumber& all) { all.held.reset(); });
}

std::function<WaitStage(Runtime&)> AtNumber(absl::Status (*wait)(Guarded<int>&)) {
  return With<Guarded<int>>(
      [](Guarded<int>&) {}, wait,
      [](Guarded<int>& number) { number.With([](int& value) { value = 1; }); });
}

std::function<WaitStage(Runtime&)> AtMailbox(absl::Status (*wait)(Mailbox&)) {
  return With<Mailbox>([](Mailbox&) {},
                       [wait](Mailbox& mailbox) -> absl::Status {
                         const MutexLock lock(mailbox.mutex);
                         absl::Status waited = wait(mailbox);
                         EXPECT_TRUE(mailbox.mutex.IsHeldByCurrent());
                         return waited;
                       },
                       [](Mailbox& mailbox) {
                         const MutexLock lock(mailbox.mutex);
                         mailbox.has_mail = true;
                         mailbox.changed.NotifyAll();
                       });
}

struct NoPermits {
  Semaphore slots{0};
};

std::function<WaitStage(Runtime&)> AtSemaphore(absl::Status (*wait)(Semaphore&)) {
  return With<NoPermits>([](NoPermits&) {}, [wait](NoPermits& all) { return wait(all.slots); },
                         [](NoPermits& all) { all.slots.Release(); });
}

std::function<WaitStage(Runtime&)> AtEvent(absl::Status (*wait)(Event&)) {
  return With<Event>([](Event&) {}, wait, [](Event& event) { event.Set(); });
}

std::function<WaitStage(Runtime&)> AtWaitGroup(absl::Status (*wait)(WaitGroup&)) {
  return With<WaitGroup>([](WaitGroup& group) { group.Add(); }, wait,
                         [](WaitGroup& group) { group.Done(); });
}

// Whoever has left is no party any more.
std::function<WaitStage(Runtime&)> AtBarrier(absl::Status (*wait)(Barrier<>&)) {
  return [wait](Runtime&) -> WaitStage {
    auto barrier = std::make_shared<Barrier<>>(2);
    return {.wait = [barrier, wait] { return wait(*barrier); },
            .satisfy = [barrier] { static_cast<void>(barrier->Arrive()); },
            .again = Again::kIsNotDone};
  };
}

WaitStage OnceThatRuns(Runtime& runtime) {
  struct Running {
    Once once;
    Event go;
    ThreadProbe probe;
    VirtualThread runner;
  };
  auto all = std::make_shared<Running>();
  all->runner = runtime.Spawn([all = all.get()] {
    return all->once.Call([all] {
      all->probe.Attach();
      return all->go.Wait();
    });
  });
  all->probe.AwaitParked();
  return {.wait = [all] { return all->once.Call([] { ADD_FAILURE() << "it need not run"; }); },
          .satisfy =
              [all] {
                all->go.Set();
                EXPECT_OK(all->runner.Join());
              }};
}

// A sender whose receiver is the test's thread, which receives in satisfy.
WaitStage Sending(absl::Status (*wait)(const Sender<int>&, int&&)) {
  // With room for one, so that what satisfies it need not wait itself; and full.
  auto ends = std::make_shared<ChannelEnds<int>>(MakeChannel<int>({.capacity = 1}));
  EXPECT_OK(ends->sender.Send(1));
  return {.wait = [ends, wait]() -> absl::Status {
            int value = 7;
            absl::Status sent = wait(ends->sender, std::move(value));
            EXPECT_EQ(value, 7);
            return sent;
          },
          .satisfy = [ends] { EXPECT_OK(ends->receiver.Receive()); }};
}

WaitStage Receiving(absl::Status (*wait)(const Receiver<int>&)) {
  auto ends = std::make_shared<ChannelEnds<int>>(MakeChannel<int>({.capacity = 1}));
  return {.wait = [ends, wait] { return wait(ends->receiver); },
          .satisfy = [ends] { EXPECT_OK(ends->sender.Send(1)); }};
}

// A future whose promise the test's thread keeps.
std::function<WaitStage(Runtime&)> AtFuture(absl::Status (*wait)(Future<int>&)) {
  struct Pending {
    PromiseEnds<int> pair = MakePromise<int>();
  };
  return [wait](Runtime&) -> WaitStage {
    auto all = std::make_shared<Pending>();
    return {.wait = [all, wait] { return wait(all->pair.future); },
            .satisfy = [all] { all->pair.promise.Set(1); }};
  };
}

absl::Status SelectFrom(Event& event) {
  auto [sender, receiver] = MakeChannel<int>();
  return Select(OnEvent(event, [] {}), OnReceive(receiver, [](int) { ADD_FAILURE(); }));
}

// A virtual thread that ends when the event is set, and not before, whoever asks.
struct Stubborn {
  Event go;
  VirtualThread thread;
};

std::shared_ptr<Stubborn> MakeStubborn(Runtime& runtime) {
  auto all = std::make_shared<Stubborn>();
  all->thread = runtime.Spawn([all = all.get()] {
    const CancelShield shield;
    return all->go.Wait();
  });
  return all;
}

WaitStage Joining(Runtime& runtime) {
  auto all = MakeStubborn(runtime);
  return {.wait = [all] { return all->thread.Join(); },
          .satisfy = [all] { all->go.Set(); },
          .is_satisfied = [all] { return all->thread.IsDone(); }};
}

WaitStage Destroying(Runtime& runtime) {
  auto all = MakeStubborn(runtime);
  return {.wait =
              [all] {
                const VirtualThread last = std::move(all->thread);
                return absl::OkStatus();
              },
          .satisfy = [all] { all->go.Set(); }};
}

const auto kIsSet = [](int value) { return value != 0; };

const WaitStages& Stages() {
  static const WaitStages stages = {
      {"Mutex::lock", Locked<Mutex>(
                          [](Mutex& mutex) {
                            mutex.lock();
                            return absl::OkStatus();
                          },
                          [](Mutex& mutex) { mutex.unlock(); })},
      {"Mutex::LockUntil", Locked<Mutex>([](Mutex& mutex) { return mutex.LockUntil(kNever); },
                                         [](Mutex& mutex) { mutex.unlock(); })},
      {"SharedMutex::lock", Locked<SharedMutex>(
                                [](SharedMutex& mutex) {
                                  mutex.lock();
                                  return absl::OkStatus();
                                },
                                [](SharedMutex& mutex) { mutex.unlock(); })},
      {"SharedMutex::LockUntil",
       Locked<SharedMutex>([](SharedMutex& mutex) { return mutex.LockUntil(kNever); },
                           [](SharedMutex& mutex) { mutex.unlock(); })},
      {"SharedMutex::lock_shared", Locked<SharedMutex>(
                                       [](SharedMutex& mutex) {
                                         mutex.lock_shared();
                                         return absl::OkStatus();
                                       },
                                       [](SharedMutex& mutex) { mutex.unlock_shared(); })},
      {"SharedMutex::LockSharedUntil",
       Locked<SharedMutex>([](SharedMutex& mutex) { return mutex.LockSharedUntil(kNever); },
                           [](SharedMutex& mutex) { mutex.unlock_shared(); })},
      {"Guarded::Lock", AtHeldNumber([](Guarded<int>& number) {
         *number.Lock().operator->() = 1;
         return absl::OkStatus();
       })},
      {"Guarded::LockUntil",
       AtHeldNumber([](Guarded<int>& number) { return number.LockUntil(kNever).status(); })},
      {"Guarded::With", AtHeldNumber([](Guarded<int>& number) {
         number.With([](int& value) { ++value; });
         return absl::OkStatus();
       })},
      {"Held::Await", AtNumber([](Guarded<int>& number) { return number.Lock().Await(kIsSet); })},
      {"Held::AwaitUntil",
       AtNumber([](Guarded<int>& number) { return number.Lock().AwaitUntil(kNever, kIsSet); })},
      {"Condition::Wait", AtMailbox([](Mailbox& mailbox) {
         return mailbox.changed.Wait(mailbox.mutex, [&] { return mailbox.has_mail; });
       })},
      {"Condition::WaitUntil", AtMailbox([](Mailbox& mailbox) -> absl::Status {
         while (!mailbox.has_mail) {
           BOBBIN_RETURN_IF_ERROR(mailbox.changed.WaitUntil(mailbox.mutex, kNever));
         }
         return absl::OkStatus();
       })},
      {"Semaphore::Acquire", AtSemaphore([](Semaphore& slots) { return slots.Acquire(); })},
      {"Semaphore::AcquireUntil",
       AtSemaphore([](Semaphore& slots) { return slots.AcquireUntil(1, kNever); })},
      {"Semaphore::AcquirePermit",
       AtSemaphore([](Semaphore& slots) { return slots.AcquirePermit().status(); })},
      {"Event::Wait", AtEvent([](Event& event) { return event.Wait(); })},
      {"Event::WaitUntil", AtEvent([](Event& event) { return event.WaitUntil(kNever); })},
      {"WaitGroup::Wait", AtWaitGroup([](WaitGroup& group) { return group.Wait(); })},
      {"WaitGroup::WaitUntil",
       AtWaitGroup([](WaitGroup& group) { return group.WaitUntil(kNever); })},
      {"Barrier::ArriveAndWait",
       AtBarrier([](Barrier<>& barrier) { return barrier.ArriveAndWait(); })},
      {"Barrier::Wait",
       AtBarrier([](Barrier<>& barrier) { return barrier.Wait(barrier.Arrive()); })},
      {"Once::Call", OnceThatRuns},
      {"Sender::Send",
       [](Runtime&) {
         return Sending(
             [](const Sender<int>& sender, int&& value) { return sender.Send(std::move(value)); });
       }},
      {"Sender::SendUntil",
       [](Runtime&) {
         return Sending([](const Sender<int>& sender, int&& value) {
           return sender.SendUntil(std::move(value), kNever);
         });
       }},
      {"Receiver::Receive",
       [](Runtime&) {
         return Receiving(
             [](const Receiver<int>& receiver) { return receiver.Receive().status(); });
       }},
      {"Receiver::ReceiveUntil",
       [](Runtime&) {
         return Receiving(
             [](const Receiver<int>& receiver) { return receiver.ReceiveUntil(kNever).status(); });
       }},
      {"Receiver::begin",
       [](Runtime&) {
         return Receiving([](const Receiver<int>& receiver) {
           for ([[maybe_unused]] const int value : receiver) return absl::OkStatus();
           return CheckStop();
         });
       }},
      {"Select", AtEvent(SelectFrom)},
      {"Future::Wait", AtFuture([](Future<int>& future) { return future.Wait(); })},
      {"Future::WaitUntil", AtFuture([](Future<int>& future) { return future.WaitUntil(kNever); })},
      {"Future::Get", AtFuture([](Future<int>& future) { return future.Get().status(); })},
      {"Future::GetUntil",
       AtFuture([](Future<int>& future) { return future.GetUntil(kNever).status(); })},
      {"WaitAny", AtFuture([](Future<int>& future) {
         auto [promise, never] = MakePromise<int>();
         return WaitAny(never, future).status();
       })},
      {"WaitAll", AtFuture([](Future<int>& future) {
         auto [promise, set] = MakePromise<int>();
         promise.Set(1);
         return WaitAll(set, future);
       })},
      {"VirtualThread::Join", Joining},
      {"VirtualThread::~VirtualThread", Destroying},
  };
  return stages;
}

BOBBIN_FOREIGN_TEST(CoreWaitsTest, EachWaitAnswersAsTheTableSays) {
  WalkWaits("core", Stages(), runtime());
}

}  // namespace
}  // namespace bobbin::test
