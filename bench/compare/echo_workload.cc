// SPDX-License-Identifier: Apache-2.0

#include <sched.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "fmt/format.h"

#include <bobbin/core/clock.h>
#include <bobbin/core/mutex.h>
#include <bobbin/core/status.h>
#include <bobbin/io/tcp.h>

#include "bench/compare/crew.h"
#include "bench/compare/echo_client.h"
#include "bench/compare/measurement.h"
#include "bench/compare/text.h"
#include "bench/compare/units.h"
#include "bench/compare/workload.h"
#include "bench/echo/process_setup.h"

namespace bobbin::compare {
namespace {

constexpr size_t kBufferBytes = 1024;  // The client's messages have 64.

// Descriptors that this process needs besides the connections'.
constexpr size_t kOtherFiles = 64;

// Takes the last of this process's CPUs away from it, for the client, which spins: otherwise it
// would compete with the server's threads, and with those of one kind more than with the others.
// Returns the CPU; -1 if there is but one, which they then share.
int SetCpuAside() {
  cpu_set_t cpus;
  if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0 || CPU_COUNT(&cpus) < 2) return -1;
  int last = CPU_SETSIZE - 1;
  while (!CPU_ISSET(static_cast<size_t>(last), &cpus)) --last;
  CPU_CLR(static_cast<size_t>(last), &cpus);
  return sched_setaffinity(0, sizeof(cpus), &cpus) == 0 ? last : -1;
}

class EchoServer {
 public:
  explicit EchoServer(const Trial& trial) : trial_(trial), measurement_(trial) {}

  absl::StatusOr<Figures> Measure() {
    const size_t files_max = bench::RaiseFileLimit();
    if (trial_.concurrency + kOtherFiles > files_max) {
      return MakeStatus(absl::StatusCode::kResourceExhausted,
                        fmt::format("a process may have {} files open here", Grouped(files_max)));
    }
    const int client_cpu = SetCpuAside();
    BOBBIN_ASSIGN_OR_RETURN(const std::unique_ptr<Crew> crew, MakeCrew(trial_.kind));
    BOBBIN_ASSIGN_OR_RETURN(listener_, io::TcpListener::Bind("127.0.0.1:0"));
    BOBBIN_RETURN_IF_ERROR(crew->Start("acceptor", [this, &crew] { AcceptAll(*crew); }));

    const absl::StatusOr<bench::LoadResult> load = RunClient(client_cpu);
    listener_.Close();
    crew->Join();
    {
      MutexLock lock(mutex_);
      BOBBIN_RETURN_IF_ERROR(failure_);
    }
    BOBBIN_RETURN_IF_ERROR(load.status());

    // What the server costs was counted here, what it achieves by those whom it serves.
    Figures figures = measurement_.Summarise();
    figures.operations = load->requests;
    figures.operations_per_second = load->requests_per_second;
    figures.latency_p50_us = load->p50_us;
    figures.latency_p99_us = load->p99_us;
    figures.latency_p999_us = load->p999_us;
    return figures;
  }

 private:
  // When it returns, the client has gone, and its connections with it.
  absl::StatusOr<bench::LoadResult> RunClient(int cpu) {
    BOBBIN_ASSIGN_OR_RETURN(EchoClient client,
                            EchoClient::Start({
                                .port = listener_.local_address().port(),
                                .connections = static_cast<uint32_t>(trial_.concurrency),
                                .seconds = trial_.seconds,
                                .warmup_seconds = trial_.warmup_seconds(),
                                .cpu = cpu,
                            }));
    return client.Finish([this] { return !measurement_.is_stopped(); });
  }

  void AcceptAll(Crew& crew) {
    measurement_.NoteBeforeUnits();
    for (size_t accepted = 0; accepted < trial_.concurrency; ++accepted) {
      absl::StatusOr<io::TcpStream> peer = listener_.Accept();
      if (!peer.ok()) return Fail(peer.status());
      const absl::Status started = crew.Start(
          "connection", [this, peer = *std::move(peer)]() mutable { Serve(std::move(peer)); });
      if (!started.ok()) return Fail(ThreadsRanOut(accepted));
    }
    measurement_.Begin();
  }

  void Serve(io::TcpStream peer) {
    std::array<std::byte, kBufferBytes> buffer;
    while (true) {
      const absl::StatusOr<size_t> received = peer.Read(buffer);
      if (!received.ok() || *received == 0) break;  // The client reports what went wrong.
      if (!peer.WriteAll(std::span(buffer).first(*received)).ok()) break;
      measurement_.Record(MonotonicNow(), {});
    }
    measurement_.NoteUnitsLeave();
  }

  void Fail(const absl::Status& status) {
    // It is closed when the client has gone.
    if (absl::IsAborted(status)) return;
    MutexLock lock(mutex_);
    failure_.Update(status);
    measurement_.Stop();
  }

  const Trial& trial_;
  Measurement measurement_;
  io::TcpListener listener_;

  Mutex mutex_;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<Figures> Run(const Trial& trial) { return EchoServer(trial).Measure(); }

}  // namespace

const Workload kEchoWorkload = {
    .name = "echo",
    .title = "every thread serves a connection that always has one message under way",
    .latency = "the client's, which spins on a CPU of its own",
    // An address has about 28,000 ports to connect from.
    .concurrency_max = 25'000,
    .run = Run,
};

}  // namespace bobbin::compare
