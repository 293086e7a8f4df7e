// SPDX-License-Identifier: Apache-2.0

#include "io/src/resolver_core.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <bobbin/core/cancel.h>
#include <bobbin/core/role.h>
#include <bobbin/core/status.h>
#include <bobbin/sched/spawn.h>

#include "io/src/address_order.h"
#include "io/src/file_call.h"
#include "io/src/host_name.h"

namespace bobbin::io::internal {

namespace {

using Addresses = ResolverCore::Addresses;

// Both families, or the one that is asked for.
std::vector<FamilyAnswer> AnswersOf(Families families) {
  std::vector<FamilyAnswer> answers;
  if (families != Families::kIpv4) answers.push_back({.family = AF_INET6});
  if (families != Families::kIpv6) answers.push_back({.family = AF_INET});
  return answers;
}

bool IsOf(Families families, const SocketAddress& address) {
  return families == Families::kBoth || address.is_ipv6() == (families == Families::kIpv6);
}

std::string_view NoAddressText(Families families) {
  switch (families) {
    case Families::kIpv4:
      return "the name has no IPv4 address";
    case Families::kIpv6:
      return "the name has no IPv6 address";
    default:
      return "the name has no address";
  }
}

absl::Status Failed(absl::StatusCode code, std::string_view name, std::string_view why) {
  return MakeStatus(code, fmt::format("resolve {}: {}", name, why));
}

absl::Status StatusOf(DnsOutcome outcome, std::string_view name, Families families) {
  switch (outcome) {
    case DnsOutcome::kNoName:
      return Failed(absl::StatusCode::kNotFound, name, "no such name");
    case DnsOutcome::kNoAddress:
      return Failed(absl::StatusCode::kFailedPrecondition, name, NoAddressText(families));
    case DnsOutcome::kFailure:
      return Failed(absl::StatusCode::kUnavailable, name, "the name servers fail (SERVFAIL)");
    case DnsOutcome::kRefusal:
      return Failed(absl::StatusCode::kPermissionDenied, name, "the name servers refuse (REFUSED)");
    case DnsOutcome::kNotImplemented:
      return Failed(absl::StatusCode::kUnimplemented, name,
                    "the name servers do not know how (NOTIMP)");
    case DnsOutcome::kNonsense:
      return Failed(absl::StatusCode::kDataLoss, name, "the name servers answer nonsense");
    default:
      return Failed(absl::StatusCode::kUnavailable, name, "no name server answers");
  }
}

// What the answers of the families are together.
struct Verdict {
  DnsOutcome outcome = DnsOutcome::kSilence;
  Addresses addresses = {};
  std::optional<std::chrono::seconds> keep = std::nullopt;  // Empty: not at all.
};

Verdict JudgeOf(std::span<const FamilyAnswer> families) {
  Verdict verdict;
  bool is_complete = true;
  std::chrono::seconds keep = std::chrono::seconds::max();
  const DnsAnswer* worst = nullptr;
  for (const FamilyAnswer& each : families) {
    const DnsAnswer& answer = each.answer;
    verdict.addresses.insert(verdict.addresses.end(), answer.addresses.begin(),
                             answer.addresses.end());
    is_complete = is_complete && answer.is_settled();
    keep = std::min(keep, answer.keep);
    // A server that has not said whether there are addresses leaves that open, unless the other
    // family's answer is a verdict for both.
    if (worst == nullptr || each.is_verdict() || (worst->is_settled() && !answer.is_settled())) {
      worst = &answer;
    }
  }
  verdict.outcome = verdict.addresses.empty() ? worst->outcome : DnsOutcome::kAddresses;
  if (is_complete) verdict.keep = keep;
  return verdict;
}

}  // namespace

absl::StatusOr<Addresses> ResolverCore::Resolve(const ResolveOptions& options,
                                                std::string_view name) {
  Question question{
      .name = CanonicalName(name), .families = options.families, .search = options.search};
  if (name.ends_with('.')) question.search = SearchList::kIgnored;
  absl::StatusOr<Addresses> kept;
  if (FindKept(question, kept)) return kept;
  BOBBIN_RETURN_IF_ERROR(CheckStop());
  if (CurrentRole() == Role::kVirtual) return AskShared(std::move(question));
  return Ask(question);
}

absl::StatusOr<Addresses> ResolverCore::AskShared(Question question) {
  while (true) {
    BOBBIN_ASSIGN_OR_RETURN(const std::shared_ptr<Flight> flight, Join(question));
    const absl::Status waited = flight->done.Wait();
    // What leaving does to the flight, is no answer.
    const bool is_answered = flight->done.IsSet();
    Leave(flight);
    if (!is_answered) return waited;
    // The end of the runtime that it belonged to is not this caller's.
    if (absl::IsCancelled(flight->result.status()) && CheckStop().ok()) continue;
    return flight->result;
  }
}

absl::StatusOr<std::shared_ptr<ResolverCore::Flight>> ResolverCore::Join(Question question) {
  const MutexLock lock(lock_);
  std::shared_ptr<Flight>& listed = flights_[question];
  if (listed != nullptr) {
    ++listed->callers;
    ++statistics_.shared;
    return listed;
  }
  auto flight = std::make_shared<Flight>(question);
  absl::StatusOr<VirtualThread> thread =
      TrySpawn({.name = "resolve " + question.name},
               [core = shared_from_this(), flight] { core->Fly(*flight); });
  if (!thread.ok()) {
    flights_.erase(question);
    return thread.status();
  }
  flight->thread = *std::move(thread);
  flight->callers = 1;
  listed = flight;
  return flight;
}

void ResolverCore::Fly(Flight& flight) {
  flight.result = Ask(flight.question);
  {
    const MutexLock lock(lock_);
    const auto listed = flights_.find(flight.question);
    if (listed != flights_.end() && listed->second.get() == &flight) flights_.erase(listed);
  }
  flight.done.Set();
}

void ResolverCore::Leave(const std::shared_ptr<Flight>& flight) {
  VirtualThread thread;
  {
    const MutexLock lock(lock_);
    if (--flight->callers > 0) return;
    const auto listed = flights_.find(flight->question);
    if (listed != flights_.end() && listed->second == flight) flights_.erase(listed);
    thread = std::move(flight->thread);
  }
  // It ends by itself, and the runtime waits for it.
  if (!flight->done.IsSet()) thread.Cancel();
  std::move(thread).Detach();
}

absl::StatusOr<std::shared_ptr<const ResolverFiles>> ResolverCore::CurrentFiles() {
  std::shared_ptr<const ResolverFiles> known;
  {
    const MutexLock lock(lock_);
    known = files_;
  }
  std::shared_ptr<const ResolverFiles> files;
  BOBBIN_RETURN_IF_ERROR(
      RunFileCall({"read", options_.resolv_conf}, [&](InterruptibleCall&) -> internal::Result {
        files = ResolverFiles::LoadIfChanged(options_.resolv_conf, options_.hosts, known);
        return 0;
      }).status());

  const MutexLock lock(lock_);
  if (files_ != nullptr && !files->SaysTheSameAs(*files_)) {
    kept_.clear();
    ages_.clear();
  }
  files_ = files;
  return files;
}

absl::Status ResolverCore::AskServers(const ResolvConf& conf, const std::string& name,
                                      std::span<FamilyAnswer> families) {
  const std::vector<SocketAddress>& servers =
      options_.servers.empty() ? conf.servers : options_.servers;
  const int attempts = options_.attempts == 0 ? conf.attempts : options_.attempts;
  size_t first = 0;
  if (conf.rotates) {
    const MutexLock lock(lock_);
    first = first_server_++;
  }
  std::vector<bool> is_silent(servers.size(), true);
  for (int attempt = 0; attempt < attempts; ++attempt) {
    for (size_t i = 0; i < servers.size(); ++i) {
      const size_t which = (first + i) % servers.size();
      if (!is_silent[which]) continue;  // It has said that it cannot, and would say so again.
      BOBBIN_RETURN_IF_ERROR(
          AskServer({.name = name,
                     .server = servers[which],
                     .transport = conf.uses_tcp ? DnsTransport::kTcp : DnsTransport::kUdpFirst,
                     .attempt = options_.attempt.count() == 0 ? conf.attempt : options_.attempt,
                     .other_family_wait = options_.other_family_wait},
                    families));
      const auto is = [&](DnsOutcome outcome) {
        return std::any_of(families.begin(), families.end(), [&](const FamilyAnswer& family) {
          return family.answer.outcome == outcome;
        });
      };
      if (std::any_of(families.begin(), families.end(),
                      [](const FamilyAnswer& family) { return family.is_verdict(); })) {
        return absl::OkStatus();
      }
      if (std::all_of(families.begin(), families.end(),
                      [](const FamilyAnswer& family) { return family.answer.is_settled(); })) {
        return absl::OkStatus();
      }
      is_silent[which] = is(DnsOutcome::kSilence) || is(DnsOutcome::kUnasked);
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<Addresses> ResolverCore::Ask(const Question& question) {
  struct InFlight {
    explicit InFlight(ResolverCore& its_core) : core(its_core) {
      const MutexLock lock(core.lock_);
      ++core.statistics_.asked;
      ++core.statistics_.in_flight;
    }
    ~InFlight() {
      const MutexLock lock(core.lock_);
      --core.statistics_.in_flight;
    }
    ResolverCore& core;
  } const in_flight(*this);

  BOBBIN_ASSIGN_OR_RETURN(const std::shared_ptr<const ResolverFiles> files, CurrentFiles());

  // What the files say is not kept: it is known already.
  Addresses known;
  if (const auto host = files->hosts.find(question.name); host != files->hosts.end()) {
    known = host->second;
  } else if (IsLocalhost(question.name)) {
    known = {*SocketAddress::Parse("::1", 0), *SocketAddress::Parse("127.0.0.1", 0)};
  }
  if (!known.empty()) {
    std::erase_if(known, [&](const SocketAddress& a) { return !IsOf(question.families, a); });
    if (known.empty()) {
      return StatusOf(DnsOutcome::kNoAddress, question.name, question.families);
    }
    OrderAddresses(known);
    return known;
  }

  // The servers, for one name after the other.
  const ResolvConf& conf = files->resolv_conf;
  std::vector<std::string> names = {question.name};
  if (question.search == SearchList::kUsed) {
    names = SearchedNames(question.name, conf.search, conf.dots_min);
  }
  std::chrono::seconds keep = std::chrono::seconds::max();
  bool is_complete = true;
  Verdict verdict;
  for (const std::string& name : names) {
    std::vector<FamilyAnswer> families = AnswersOf(question.families);
    BOBBIN_RETURN_IF_ERROR(AskServers(conf, name, families));
    verdict = JudgeOf(families);
    is_complete = is_complete && verdict.keep.has_value();
    keep = std::min(keep, verdict.keep.value_or(std::chrono::seconds(0)));
    if (verdict.outcome != DnsOutcome::kNoName) break;
  }
  OrderAddresses(verdict.addresses);
  absl::StatusOr<Addresses> result =
      verdict.outcome == DnsOutcome::kAddresses
          ? absl::StatusOr<Addresses>(std::move(verdict.addresses))
          : StatusOf(verdict.outcome, question.name, question.families);
  if (is_complete) Keep(question, result, keep, files);
  return result;
}

// --- The cache

bool ResolverCore::FindKept(const Question& question, absl::StatusOr<Addresses>& result) {
  if (options_.cached_max == 0) return false;
  const MutexLock lock(lock_);
  const auto kept = kept_.find(question);
  if (kept == kept_.end()) return false;
  if (kept->second.until <= MonotonicNow()) {
    DropKept(kept);
    return false;
  }
  ++statistics_.cached;
  result = kept->second.result;
  return true;
}

void ResolverCore::Keep(const Question& question, const absl::StatusOr<Addresses>& result,
                        std::chrono::nanoseconds time,
                        const std::shared_ptr<const ResolverFiles>& files) {
  time = std::min(time, options_.cached_for_max);
  if (options_.cached_max == 0 || time <= std::chrono::nanoseconds(0)) return;
  const MutexLock lock(lock_);
  // It was asked under other files.
  if (files_ == nullptr || !files_->SaysTheSameAs(*files)) return;
  if (const auto kept = kept_.find(question); kept != kept_.end()) DropKept(kept);
  if (kept_.size() == options_.cached_max) DropKept(kept_.find(ages_.front()));
  const auto age = ages_.insert(ages_.end(), question);
  kept_.insert({question, Kept{.result = result, .until = MonotonicNow() + time, .age = age}});
}

void ResolverCore::DropKept(absl::flat_hash_map<Question, Kept>::iterator kept) {
  ages_.erase(kept->second.age);
  kept_.erase(kept);
}

ResolverStatistics ResolverCore::Statistics() const {
  const MutexLock lock(lock_);
  return statistics_;
}

}  // namespace bobbin::io::internal
