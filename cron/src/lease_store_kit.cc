// SPDX-License-Identifier: Apache-2.0

#include <algorithm>
#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "absl/cleanup/cleanup.h"

#include <fmt/format.h>

#include <bobbin/core/internal/atomic.h>
#include <bobbin/core/status.h>
#include <bobbin/cron/lease_store_kit.h>
#include <bobbin/sched/sleep.h>
#include <bobbin/sched/task_group.h>

namespace bobbin::cron {

namespace {

absl::Status Not(std::string_view what) {
  return MakeStatus(absl::StatusCode::kInternal, fmt::format("not so: {}", what));
}
absl::Status Expect(bool holds, std::string_view what) {
  return holds ? absl::OkStatus() : Not(what);
}

// A name that no run of the kit has had before: rows may outlive it.
std::string NewName() { return "kit-" + NewLeaseOwner(); }

// Two processes and a name.
struct Stage {
  std::unique_ptr<LeaseStore> here;
  std::unique_ptr<LeaseStore> there;
  std::string name = NewName();
};
absl::StatusOr<Stage> Open(LeaseStoreKit& kit) {
  Stage stage;
  BOBBIN_ASSIGN_OR_RETURN(stage.here, kit.open());
  BOBBIN_ASSIGN_OR_RETURN(stage.there, kit.open());
  return stage;
}

absl::StatusOr<Lease> ClaimFree(LeaseStore& store, const LeaseTerms& terms) {
  BOBBIN_ASSIGN_OR_RETURN(const std::optional<Lease> lease, store.Claim(terms));
  if (!lease) return Not("a lease that nobody holds can be claimed");
  return *lease;
}
absl::Status ExpectTaken(LeaseStore& store, const LeaseTerms& terms) {
  BOBBIN_ASSIGN_OR_RETURN(const std::optional<Lease> lease, store.Claim(terms));
  return Expect(!lease.has_value(), "a lease that is held cannot be claimed");
}
absl::Status ExpectLost(const absl::Status& status) {
  if (status.code() == absl::StatusCode::kAborted) return absl::OkStatus();
  return Not(fmt::format("a lease that is not held any more answers ABORTED: {}",
                         status.ok() ? "OK" : std::string(MessageOf(status))));
}

absl::Status OneHoldsIt(LeaseStoreKit& kit) {
  BOBBIN_ASSIGN_OR_RETURN(const Stage stage, Open(kit));
  const LeaseTerms terms = {.name = stage.name, .at_most = kit.unit * 1000};
  BOBBIN_ASSIGN_OR_RETURN(const Lease lease, ClaimFree(*stage.here, terms));
  BOBBIN_RETURN_IF_ERROR(Expect(lease.name == stage.name && !lease.owner.empty(), "it is named"));
  BOBBIN_RETURN_IF_ERROR(Expect(lease.until - lease.since == terms.at_most, "it ends at_most on"));
  BOBBIN_RETURN_IF_ERROR(ExpectTaken(*stage.there, terms));
  BOBBIN_RETURN_IF_ERROR(ExpectTaken(*stage.here, terms));
  // Another name is another lease.
  BOBBIN_RETURN_IF_ERROR(ClaimFree(*stage.there, {.name = NewName()}).status());
  BOBBIN_RETURN_IF_ERROR(stage.here->Release(lease));
  return ClaimFree(*stage.there, terms).status();
}

absl::Status ItStaysTakenForAtLeast(LeaseStoreKit& kit) {
  BOBBIN_ASSIGN_OR_RETURN(const Stage stage, Open(kit));
  const LeaseTerms terms = {
      .name = stage.name, .at_most = kit.unit * 1000, .at_least = kit.unit * 2};
  BOBBIN_ASSIGN_OR_RETURN(const Lease lease, ClaimFree(*stage.here, terms));
  BOBBIN_RETURN_IF_ERROR(stage.here->Release(lease));
  BOBBIN_RETURN_IF_ERROR(ExpectTaken(*stage.there, terms));
  kit.pass(kit.unit * 2 + kit.unit / 2);
  return ClaimFree(*stage.there, terms).status();
}

absl::Status ADeadHolderFreesItAfterAtMost(LeaseStoreKit& kit) {
  BOBBIN_ASSIGN_OR_RETURN(Stage stage, Open(kit));
  const LeaseTerms terms = {.name = stage.name, .at_most = kit.unit * 2};
  BOBBIN_RETURN_IF_ERROR(ClaimFree(*stage.here, terms).status());
  stage.here.reset();
  BOBBIN_RETURN_IF_ERROR(ExpectTaken(*stage.there, terms));
  kit.pass(kit.unit * 2 + kit.unit / 2);
  return ClaimFree(*stage.there, terms).status();
}

absl::Status AHolderThatSleptCannotTouchAnothersLease(LeaseStoreKit& kit) {
  BOBBIN_ASSIGN_OR_RETURN(const Stage stage, Open(kit));
  const LeaseTerms terms = {.name = stage.name, .at_most = kit.unit * 2};
  BOBBIN_ASSIGN_OR_RETURN(const Lease lost, ClaimFree(*stage.here, terms));
  kit.pass(kit.unit * 2 + kit.unit / 2);
  // Nobody has taken it, but it has run out.
  BOBBIN_RETURN_IF_ERROR(ExpectLost(stage.here->Extend(lost, kit.unit).status()));
  BOBBIN_ASSIGN_OR_RETURN(
      const Lease held, ClaimFree(*stage.there, {.name = stage.name, .at_most = kit.unit * 1000}));
  BOBBIN_RETURN_IF_ERROR(ExpectLost(stage.here->Extend(lost, kit.unit).status()));
  BOBBIN_RETURN_IF_ERROR(ExpectLost(stage.here->Release(lost)));
  BOBBIN_RETURN_IF_ERROR(ExpectTaken(*stage.here, terms));
  BOBBIN_RETURN_IF_ERROR(Expect(held.token > lost.token, "tokens grow"));
  return stage.there->Release(held);
}

absl::Status ItIsExtendedAsOftenAsOneLikes(LeaseStoreKit& kit) {
  BOBBIN_ASSIGN_OR_RETURN(const Stage stage, Open(kit));
  const LeaseTerms terms = {.name = stage.name, .at_most = kit.unit * 3};
  BOBBIN_ASSIGN_OR_RETURN(Lease lease, ClaimFree(*stage.here, terms));
  for (int i = 0; i < 3; ++i) {
    kit.pass(kit.unit * 2);
    const absl::Time before = lease.until;
    BOBBIN_ASSIGN_OR_RETURN(lease, stage.here->Extend(lease, kit.unit * 3));
    BOBBIN_RETURN_IF_ERROR(Expect(lease.until > before, "an extended lease ends later"));
    BOBBIN_RETURN_IF_ERROR(ExpectTaken(*stage.there, terms));
  }
  BOBBIN_RETURN_IF_ERROR(stage.here->Release(lease));
  BOBBIN_RETURN_IF_ERROR(ExpectLost(stage.here->Extend(lease, kit.unit).status()));
  BOBBIN_RETURN_IF_ERROR(ExpectLost(stage.here->Release(lease)));
  return ClaimFree(*stage.there, terms).status();
}

absl::Status EachClaimHasAGreaterToken(LeaseStoreKit& kit) {
  BOBBIN_ASSIGN_OR_RETURN(const Stage stage, Open(kit));
  int64_t token = 0;
  for (int i = 0; i < 10; ++i) {
    LeaseStore& store = i % 2 == 0 ? *stage.here : *stage.there;
    BOBBIN_ASSIGN_OR_RETURN(const Lease lease, ClaimFree(store, {.name = stage.name}));
    BOBBIN_RETURN_IF_ERROR(Expect(lease.token > token, "tokens grow"));
    token = lease.token;
    BOBBIN_RETURN_IF_ERROR(store.Release(lease));
  }
  return absl::OkStatus();
}

absl::Status TheListingShowsWhoHoldsWhat(LeaseStoreKit& kit) {
  BOBBIN_ASSIGN_OR_RETURN(const Stage stage, Open(kit));
  BOBBIN_ASSIGN_OR_RETURN(const Lease lease, ClaimFree(*stage.here, {.name = stage.name}));
  const auto listed = [&]() -> absl::StatusOr<std::optional<Lease>> {
    BOBBIN_ASSIGN_OR_RETURN(const std::vector<Lease> leases, stage.there->List());
    for (const Lease& each : leases) {
      if (each.name == stage.name) return std::optional<Lease>(each);
    }
    return std::optional<Lease>();
  };
  BOBBIN_ASSIGN_OR_RETURN(const std::optional<Lease> held, listed());
  BOBBIN_RETURN_IF_ERROR(Expect(held && held->owner == lease.owner && held->since == lease.since &&
                                    held->until == lease.until && held->token == lease.token,
                                "a lease that is held is listed"));
  BOBBIN_RETURN_IF_ERROR(stage.here->Release(lease));
  BOBBIN_ASSIGN_OR_RETURN(const std::optional<Lease> gone, listed());
  return Expect(!gone.has_value(), "a lease that was released is not listed");
}

absl::Status WrongTermsAreRefused(LeaseStoreKit& kit) {
  BOBBIN_ASSIGN_OR_RETURN(const Stage stage, Open(kit));
  for (const LeaseTerms& terms :
       {LeaseTerms{}, LeaseTerms{.name = std::string(LeaseTerms::kNameBytesMax + 1, 'x')},
        LeaseTerms{.name = stage.name, .at_most = absl::ZeroDuration()},
        LeaseTerms{.name = stage.name, .at_least = absl::Seconds(-1)},
        LeaseTerms{.name = stage.name, .at_least = absl::Minutes(11)}}) {
    BOBBIN_RETURN_IF_ERROR(
        Expect(stage.here->Claim(terms).status().code() == absl::StatusCode::kInvalidArgument,
               "wrong terms answer INVALID_ARGUMENT"));
  }
  return ClaimFree(*stage.here, {.name = std::string(LeaseTerms::kNameBytesMax - 40, 'x') +
                                         stage.name.substr(0, 40)})
      .status();
}

absl::Status OfThoseWhoRaceOneGetsIt(LeaseStoreKit& kit) {
  BOBBIN_ASSIGN_OR_RETURN(const Stage stage, Open(kit));
  // Who is inside: written by holders, which the lease keeps apart if it does what it should.
  bobbin::internal::Atomic<int> inside{0};
  // Claims that have succeeded, so far.
  bobbin::internal::Atomic<int> claimed{0};
  struct Racer {
    LeaseStore& store;
    // Written by the racer, read by the other one, who holds the lease until there is one more: so
    // that no claim is without a rival.
    bobbin::internal::Atomic<int> attempts{0};
    bobbin::internal::Atomic<bool> has_ended{false};
  };
  Racer here{.store = *stage.here};
  Racer there{.store = *stage.there};
  const auto race = [&](Racer& self, const Racer& rival) -> absl::Status {
    const absl::Cleanup end = [&self] { self.has_ended.store(true); };
    int64_t token = 0;
    while (claimed.load() < kit.claims) {
      BOBBIN_ASSIGN_OR_RETURN(const std::optional<Lease> lease,
                              self.store.Claim({.name = stage.name}));
      self.attempts.fetch_add(1);
      Yield();
      if (!lease) continue;
      BOBBIN_RETURN_IF_ERROR(Expect(inside.fetch_add(1) == 0, "one holds it at a time"));
      BOBBIN_RETURN_IF_ERROR(Expect(lease->token > token, "tokens grow"));
      token = lease->token;
      const int before = rival.attempts.load();
      while (rival.attempts.load() == before && !rival.has_ended.load()) Yield();
      claimed.fetch_add(1);
      inside.fetch_sub(1);
      BOBBIN_RETURN_IF_ERROR(self.store.Release(*lease));
    }
    return absl::OkStatus();
  };
  TaskGroup racers;
  racers.Spawn([&] { return race(here, there); });
  racers.Spawn([&] { return race(there, here); });
  return racers.Wait();
}

constexpr LeaseStoreCheck kChecks[] = {
    {"OneHoldsIt", OneHoldsIt},
    {"ItStaysTakenForAtLeast", ItStaysTakenForAtLeast},
    {"ADeadHolderFreesItAfterAtMost", ADeadHolderFreesItAfterAtMost},
    {"AHolderThatSleptCannotTouchAnothersLease", AHolderThatSleptCannotTouchAnothersLease},
    {"ItIsExtendedAsOftenAsOneLikes", ItIsExtendedAsOftenAsOneLikes},
    {"EachClaimHasAGreaterToken", EachClaimHasAGreaterToken},
    {"TheListingShowsWhoHoldsWhat", TheListingShowsWhoHoldsWhat},
    {"WrongTermsAreRefused", WrongTermsAreRefused},
    {"OfThoseWhoRaceOneGetsIt", OfThoseWhoRaceOneGetsIt},
};

}  // namespace

std::span<const LeaseStoreCheck> LeaseStoreChecks() { return kChecks; }

}  // namespace bobbin::cron
