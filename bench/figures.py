# SPDX-License-Identifier: Apache-2.0
"""What the benchmarks' figures are compared with, and how they are read.

A figure of one run is never compared with a figure of another one: machines change their speed
from one minute to the next. It is divided by its baseline's figure from the same run of the same
program, and these ratios are compared.
"""

import json
import statistics
from pathlib import Path

SWITCH = "Switch/RawFcontext"
RING = "Switch/RawRing10000"
PLATFORM = "ParkUnpark/PlatformThreads"
PLATFORM_POLLING = "ParkUnpark/PlatformThreadsPolling"

# Benchmarks that keep their OS thread busy are measured by its CPU time: what other programs take
# away in between does not count. Those that sleep, or use two carriers, are measured by real time.
CPU, REAL = "cpu_time", "real_time"

# Benchmark: (baseline, clock).
BASELINES = {
    "Yield/2": (SWITCH, CPU),
    "Yield/10000": (RING, CPU),
    "ParkUnpark/SameCarrier": (SWITCH, CPU),
    "ParkUnpark/CrossCarrierAsleep": (PLATFORM, REAL),
    "ParkUnpark/CrossCarrierAwake": (PLATFORM_POLLING, REAL),
    "Semaphore/PingPong": (SWITCH, CPU),
    "Channel/PingPong": (SWITCH, CPU),
    "Select/TwoReadyChannels": ("Select/PlainReceive", CPU),
    "Select/OneReadyOfFour": ("Select/PlainReceive", CPU),
    "Select/PingPong": ("Channel/PingPong", CPU),
    "Future/SetThenGet": ("Future/StandardSetThenGet", CPU),
    "Future/Waited": ("Future/WaitedChannel", CPU),
    "SpawnJoin/Sequential": (SWITCH, CPU),
    "SpawnJoin/Batch1000": (SWITCH, CPU),
    "Async/Virtual": (SWITCH, CPU),
    "Async/VirtualBatch100": (SWITCH, CPU),
    "Mutex/Uncontended": (SWITCH, CPU),
    "Mutex/64Threads": (SWITCH, REAL),
    "Mutex/64ThreadsYieldInside": (SWITCH, CPU),
    "RunBlocking/RoundTrip": (PLATFORM, REAL),
    "Timer/ArmDisarm/1000000": (SWITCH, CPU),
    "Timer/DeadlineScope/1000000": (SWITCH, CPU),
}

def times_of(run):
    """The times of one run in nanoseconds: {name: {clock: time}}.

    `run` is what bobbin_bench prints with --benchmark_format=json. Of a benchmark that was
    repeated, the median.
    """
    unit_ns = {"ns": 1, "us": 1e3, "ms": 1e6, "s": 1e9}
    collected = {}
    for entry in run["benchmarks"]:
        if entry.get("run_type", "iteration") != "iteration" or entry.get("error_occurred"):
            continue
        name = entry.get("run_name", entry["name"])
        clocks = collected.setdefault(name, {CPU: [], REAL: []})
        for clock, values in clocks.items():
            values.append(entry[clock] * unit_ns[entry["time_unit"]])
    return {
        name: {clock: statistics.median(values) for clock, values in clocks.items()}
        for name, clocks in collected.items()
    }

def ratios_of(runs):
    """The median over `runs` of each benchmark's time divided by its baseline's: {name: ratio}."""
    ratios = {}
    for run in runs:
        times = times_of(run)
        for name, (baseline, clock) in BASELINES.items():
            if name in times and baseline in times:
                ratios.setdefault(name, []).append(times[name][clock] / times[baseline][clock])
    return {name: statistics.median(values) for name, values in ratios.items()}

def median_times(runs):
    """The median over `runs` of each benchmark's time, by its clock: {name: ns}."""
    times = {}
    for run in runs:
        for name, clocks in times_of(run).items():
            _, clock = BASELINES.get(name, (None, CPU if name.startswith("Switch/") else REAL))
            times.setdefault(name, []).append(clocks[clock])
    return {name: statistics.median(values) for name, values in times.items()}

def load_runs(path):
    """The runs in a file that measure.py or bobbin_bench has written."""
    content = json.loads(Path(path).read_text())
    return content["runs"] if "runs" in content else [content]
