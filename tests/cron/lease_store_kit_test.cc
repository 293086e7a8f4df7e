// SPDX-License-Identifier: Apache-2.0
//
// The kit, with the store in memory; and with stores that are wrong, which it must find out.

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

#include <bobbin/cron/lease_store_kit.h>
#include <bobbin/cron/memory_lease_store.h>

#include "tests/cron/manual_clock.h"
#include "tests/support/bobbin_test.h"

namespace bobbin::cron {
namespace {

using test::ManualClock;

// A kit over stores in memory; `make` may wrap them.
template <typename Make>
LeaseStoreKit KitOf(ManualClock& clock, Make make) {
  auto leases = std::make_shared<MemoryLeases>(clock);
  return {.open = [leases, make]() -> absl::StatusOr<std::unique_ptr<LeaseStore>> {
            return make(leases);
          },
          .pass = [&clock](absl::Duration time) { clock.Advance(time); },
          .claims = test::Rounds(10'000)};
}

BOBBIN_TEST(MemoryLeaseStoreTest, ItPassesTheKit) {
  ManualClock clock(absl::UnixEpoch());
  LeaseStoreKit kit =
      KitOf(clock, [](const auto& leases) { return std::make_unique<MemoryLeaseStore>(leases); });
  for (const LeaseStoreCheck& check : LeaseStoreChecks()) EXPECT_OK(check.run(kit)) << check.name;
}

// Right, but for one thing.
class Wrong : public LeaseStore {
 public:
  explicit Wrong(std::shared_ptr<MemoryLeases> leases) : right(std::move(leases)) {}
  absl::StatusOr<std::optional<Lease>> Claim(const LeaseTerms& terms) override {
    return right.Claim(terms);
  }
  absl::StatusOr<Lease> Extend(const Lease& lease, absl::Duration at_most) override {
    return right.Extend(lease, at_most);
  }
  absl::Status Release(const Lease& lease) override { return right.Release(lease); }
  absl::StatusOr<std::vector<Lease>> List() override { return right.List(); }

  MemoryLeaseStore right;
};

// The names of the checks that find it out.
template <typename Store>
std::vector<std::string> FoundBy() {
  ManualClock clock(absl::UnixEpoch());
  LeaseStoreKit kit = KitOf(clock, [](const auto& leases) -> std::unique_ptr<LeaseStore> {
    return std::make_unique<Store>(leases);
  });
  kit.claims = 100;
  std::vector<std::string> found;
  for (const LeaseStoreCheck& check : LeaseStoreChecks()) {
    if (!check.run(kit).ok()) found.emplace_back(check.name);
  }
  return found;
}

BOBBIN_TEST(LeaseStoreKitTest, AStoreThatIsWrongIsFoundOut) {
  struct ForgetsAtLeast : Wrong {
    using Wrong::Wrong;
    absl::StatusOr<std::optional<Lease>> Claim(const LeaseTerms& terms) override {
      LeaseTerms forgotten = terms;
      forgotten.at_least = absl::ZeroDuration();
      if (!terms.Check().ok()) return terms.Check();
      return right.Claim(forgotten);
    }
  };
  EXPECT_THAT(FoundBy<ForgetsAtLeast>(), testing::ElementsAre("ItStaysTakenForAtLeast"));

  struct ForgetsToExtend : Wrong {
    using Wrong::Wrong;
    absl::StatusOr<Lease> Extend(const Lease& lease, absl::Duration) override { return lease; }
  };
  EXPECT_THAT(FoundBy<ForgetsToExtend>(),
              testing::ElementsAre("AHolderThatSleptCannotTouchAnothersLease",
                                   "ItIsExtendedAsOftenAsOneLikes"));

  struct ReleasesAnyones : Wrong {
    using Wrong::Wrong;
    absl::Status Release(const Lease& lease) override {
      const std::vector<Lease> all = right.List().value();
      for (const Lease& held : all) {
        if (held.name == lease.name) return right.Release(held);
      }
      return right.Release(lease);
    }
  };
  EXPECT_THAT(FoundBy<ReleasesAnyones>(),
              testing::Contains("AHolderThatSleptCannotTouchAnothersLease"));

  struct LetsEveryoneIn : Wrong {
    using Wrong::Wrong;
    absl::StatusOr<std::optional<Lease>> Claim(const LeaseTerms& terms) override {
      auto lease = right.Claim(terms);
      if (lease.ok() && !*lease) *lease = Lease{.name = terms.name, .owner = "me", .token = 1};
      return lease;
    }
  };
  EXPECT_THAT(FoundBy<LetsEveryoneIn>(), testing::Contains("OfThoseWhoRaceOneGetsIt"));
}

}  // namespace
}  // namespace bobbin::cron
