// SPDX-License-Identifier: Apache-2.0
//
// ResolverCore: what a Resolver knows - the files, the cache, and the questions that are being
// asked.
//
// A question of a virtual thread is asked by another one, its flight, so that it can be shared and
// outlive who began it. The flight and all who wait for it own its record.
//
// States of a flight
//
//   listed      in `flights_`: further callers join it
//   answered    its result stands and `done` is set; not listed any more
//   abandoned   its last caller has left before that: not listed any more, and asked to stop
//
// Transitions, each under `lock_`
//
//   -> listed             a caller finds none for its question; it counts itself
//   listed -> answered    the flight, with its last step; then it sets `done`, without the lock
//   listed -> abandoned   a caller that leaves, and finds that nobody else waits
//
// Why no answer is lost: who joins a listed flight is counted before the lock is given back, so it
// cannot be abandoned under them; and its result is written before `done` is set, which the caller
// has seen before it reads. Why nothing is freed early: the record belongs to all of them together,
// and the core to every flight. A flight that is stopped by the end of its runtime answers
// CANCELLED; a caller of another runtime, who is not to stop, then asks again.
//
//   Called from   virtual, platform and foreign threads.
//   Suspends      Resolve.

#ifndef BOBBIN_IO_SRC_RESOLVER_CORE_H_
#define BOBBIN_IO_SRC_RESOLVER_CORE_H_

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

#include <bobbin/core/clock.h>
#include <bobbin/core/event.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/vthread.h>
#include <bobbin/io/resolver.h>

#include "io/src/dns_question.h"
#include "io/src/resolver_files.h"

namespace bobbin::io::internal {

class ResolverCore : public std::enable_shared_from_this<ResolverCore> {
 public:
  using Addresses = std::vector<SocketAddress>;

  explicit ResolverCore(ResolverOptions options) : options_(std::move(options)) {}

  // REQUIRES: `name` is checked, and no address. The addresses have port 0.
  absl::StatusOr<Addresses> Resolve(const ResolveOptions& options, std::string_view name);

  ResolverStatistics Statistics() const;

 private:
  // What makes two questions equal.
  struct Question {
    std::string name;  // In lower case.
    Families families = Families::kBoth;
    SearchList search = SearchList::kUsed;

    friend bool operator==(const Question&, const Question&) = default;
    template <typename H>
    friend H AbslHashValue(H state, const Question& question) {
      return H::combine(std::move(state), question.name, question.families, question.search);
    }
  };

  struct Flight {
    explicit Flight(Question its_question) : question(std::move(its_question)) {}

    const Question question;
    size_t callers = 0;    // Guarded by the core's lock.
    VirtualThread thread;  // Written by the first caller, taken by the last one, under the lock.
    Event done;
    absl::StatusOr<Addresses> result;  // Written before `done` is set.
  };

  struct Kept {
    absl::StatusOr<Addresses> result;
    MonotonicTime until;
    std::list<Question>::iterator age;  // In `ages_`.
  };

  // Asks on the calling thread.
  absl::StatusOr<Addresses> Ask(const Question& question);
  absl::StatusOr<Addresses> AskShared(Question question);
  absl::StatusOr<std::shared_ptr<Flight>> Join(Question question);
  void Fly(Flight& flight);
  void Leave(const std::shared_ptr<Flight>& flight);

  absl::StatusOr<std::shared_ptr<const ResolverFiles>> CurrentFiles();
  // Asks one server after the other for the addresses of one name.
  absl::Status AskServers(const ResolvConf& conf, const std::string& name,
                          std::span<FamilyAnswer> families);

  // Copies it, if it is there and good.
  bool FindKept(const Question& question, absl::StatusOr<Addresses>& result);
  void Keep(const Question& question, const absl::StatusOr<Addresses>& result,
            std::chrono::nanoseconds time, const std::shared_ptr<const ResolverFiles>& files);
  void DropKept(absl::flat_hash_map<Question, Kept>::iterator kept)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(lock_);

  const ResolverOptions options_;

  mutable Mutex lock_;
  std::shared_ptr<const ResolverFiles> files_ ABSL_GUARDED_BY(lock_);
  absl::flat_hash_map<Question, std::shared_ptr<Flight>> flights_ ABSL_GUARDED_BY(lock_);
  absl::flat_hash_map<Question, Kept> kept_ ABSL_GUARDED_BY(lock_);
  std::list<Question> ages_ ABSL_GUARDED_BY(lock_);  // Those of `kept_`, the oldest first.
  size_t first_server_ ABSL_GUARDED_BY(lock_) = 0;   // Where servers take turns: whose it is.
  ResolverStatistics statistics_ ABSL_GUARDED_BY(lock_);
};

}  // namespace bobbin::io::internal

#endif  // BOBBIN_IO_SRC_RESOLVER_CORE_H_
