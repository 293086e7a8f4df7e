#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what bench/README.md shows, and prints its table.

    bench/measure.py [--rounds 5] [--json FILE] [--programs build/release/bench] [--write]

Runs bobbin_bench and bobbin_scale in turns, several times, and takes medians: of ratios where there
is a baseline. Exit code 1: a goal was missed; 2: wrong options, or a program that does not run.
"""

import argparse
import datetime
import json
import os
import platform
import re
import statistics
import subprocess
import sys
from pathlib import Path

import figures

# Ratios to the baseline of figures.BASELINES.
RATIO_GOALS = {
    "Yield/2": 2.0,
    "Yield/10000": 2.0,
    "ParkUnpark/SameCarrier": 14,
    "ParkUnpark/CrossCarrierAsleep": 1.2,
    "SpawnJoin/Sequential": 14,
    "SpawnJoin/Batch1000": 7,
    "Async/Virtual": 10,
    "Async/VirtualBatch100": 10,
    "Mutex/Uncontended": 2.5,
    "Mutex/64ThreadsYieldInside": 14,
}

# Nanoseconds, where no baseline does the same.
TIME_GOALS = {"ParkUnpark/CrossCarrierAwake": 1000, "Select/TwoReadyChannels": 100}

MILLION = ["--threads", "1000000"]
SCENARIOS = {
    "park": ["park", *MILLION],
    "park, 64 KiB stacks": ["park", *MILLION, "--stack-bytes", "65536"],
    "queue": ["queue", *MILLION],
    "skynet": ["skynet", *MILLION],
    # While memory is cold, many wake before the last one sleeps: it takes some rounds to warm.
    "sleep": ["sleep", *MILLION, "--rounds", "6"],
}

def cold(values):
    """The first round, which meets memory that nobody has used yet."""
    return values[0]

def warm(values):
    """The last round: all memory has been used before."""
    return values[-1]

# Scenario, figure, how to take it from the program's output, unit, goal.
SCALE_GOALS = [
    ("park", "memory of each", lambda o: o["bytes_per_thread"], "B", 4950),
    ("park, 64 KiB stacks", "memory of each", lambda o: o["bytes_per_thread"], "B", 4600),
    ("park", "mappings", lambda o: o["mappings"], "", 100),
    ("park", "spawn and park, cold", lambda o: cold(o["spawn_ns"]), "ns", None),
    ("park", "spawn and park, warm", lambda o: warm(o["spawn_ns"]), "ns", 250),
    ("park", "unpark and end, warm", lambda o: warm(o["release_ns"]), "ns", None),
    ("queue", "memory of each", lambda o: o["bytes_per_thread"], "B", 256),
    ("queue", "spawn, cold", lambda o: cold(o["spawn_ns"]), "ns", 80),
    ("queue", "spawn, warm", lambda o: warm(o["spawn_ns"]), "ns", 80),
    ("skynet", "first", lambda o: cold(o["wall_ms"]), "ms", 100),
    ("skynet", "warm", lambda o: warm(o["wall_ms"]), "ms", 100),
    ("skynet", "peak of resident memory", lambda o: o["peak_rss_bytes"] / 2**20, "MiB", 50),
    ("sleep", "real time, warm", lambda o: warm(o["wall_ms"]), "ms", 1800),
    ("sleep", "CPU time, warm", lambda o: warm(o["cpu_ms"]), "ms", 900),
]

def parse_arguments():
    root = Path(__file__).resolve().parent.parent
    parser = argparse.ArgumentParser(description="Measures bobbin and prints the table of goals.")
    parser.add_argument("--rounds", type=int, default=5, help="default: %(default)s")
    parser.add_argument("--programs", type=Path, default=root / "build/release/bench",
                        metavar="FOLDER", help="where bobbin_bench and bobbin_scale are")
    parser.add_argument("--json", type=Path, metavar="FILE", help="keep all figures for compare.py")
    parser.add_argument("--write", action="store_true", help="put the table into bench/README.md")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds: at least 1")
    return arguments

def run_json(command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                              check=True)
        return json.loads(done.stdout)
    except subprocess.CalledProcessError as error:
        print(f"measure.py: {command[0]} failed: {error.stderr.strip()}", file=sys.stderr)
    except (OSError, ValueError) as error:
        print(f"measure.py: {command[0]}: {error}", file=sys.stderr)
    sys.exit(2)

def measure(arguments):
    """All rounds, each with one run of every program."""
    runs, outputs, loads = [], {name: [] for name in SCENARIOS}, []
    for i in range(arguments.rounds):
        print(f"round {i + 1} of {arguments.rounds}", file=sys.stderr)
        loads.append(os.getloadavg()[0])
        runs.append(run_json([arguments.programs / "bobbin_bench", "--benchmark_format=json"]))
        for name, scenario in SCENARIOS.items():
            command = [arguments.programs / "bobbin_scale", *scenario, "--json"]
            outputs[name].append(run_json(command))
    return runs, outputs, loads

def describe_machine():
    try:
        cpuinfo = Path("/proc/cpuinfo").read_text()
        model = re.search(r"^model name\s*:\s*(.*)$", cpuinfo, re.MULTILINE).group(1)
    except (OSError, AttributeError):
        model = platform.machine()
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{len(os.sched_getaffinity(0))} CPUs ({model}), {memory:.0f} GiB"

def describe_compiler(programs):
    """From the build tree that the programs lie in."""
    for file in programs.resolve().parent.glob("CMakeFiles/*/CMakeCXXCompiler.cmake"):
        text = file.read_text()
        found = dict(re.findall(r'set\(CMAKE_CXX_COMPILER_(ID|VERSION) "(.*)"\)', text))
        return f"{found.get('ID', '?')} {found.get('VERSION', '')}"
    return "unknown"

def verdict(value, goal):
    if goal is None:
        return ""
    return "met" if value <= goal else "**missed**"

def number(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"

def row(*cells):
    return "| " + " | ".join(cells) + " |"

def micro_rows(runs):
    times, ratios = figures.median_times(runs), figures.ratios_of(runs)
    for name in (n for n in times if n not in figures.BASELINES):
        yield row(f"`{name}`", number(times[name]), "", "", "", "")
    for name, (baseline, _) in figures.BASELINES.items():
        if name in TIME_GOALS:
            goal = f"{number(TIME_GOALS[name])} ns"
            met = verdict(times[name], TIME_GOALS[name])
        else:
            limit = RATIO_GOALS.get(name)
            goal = "" if limit is None else f"{limit:g} x"
            met = verdict(ratios[name], limit)
        yield row(f"`{name}`", number(times[name]), f"`{baseline}`", f"{ratios[name]:.2f} x", goal,
                  met)

def scale_rows(outputs):
    for scenario, figure, take, unit, goal in SCALE_GOALS:
        value = statistics.median(take(output) for output in outputs[scenario])
        yield row(scenario, figure, f"{number(value)} {unit}".strip(),
                  "" if goal is None else f"{number(goal)} {unit}".strip(), verdict(value, goal))

def table(rounds, programs, loads, micro, scale):
    return "\n".join([
        f"Measured with `bench/measure.py --rounds {rounds}` on "
        f"{datetime.date.today().isoformat()}:",
        f"{describe_machine()}, {platform.system()} {platform.release()}, "
        f"{describe_compiler(programs)}.",
        f"Load average before each round: {', '.join(f'{load:.1f}' for load in loads)}.",
        "",
        row("benchmark", "ns", "baseline", "ratio", "goal", ""),
        "|---|--:|---|--:|--:|---|",
        *micro,
        "",
        row("1,000,000 virtual threads", "figure", "measured", "goal", ""),
        "|---|---|--:|--:|---|",
        *scale,
    ])

def write_into_readme(text):
    readme = Path(__file__).with_name("README.md")
    begin, end = "<!-- measured: begin -->\n", "<!-- measured: end -->\n"
    before, rest = readme.read_text().split(begin)
    after = rest.split(end)[1]
    readme.write_text(f"{before}{begin}\n{text}\n\n{end}{after}")

def main():
    arguments = parse_arguments()
    runs, outputs, loads = measure(arguments)
    if arguments.json:
        arguments.json.write_text(json.dumps({"runs": runs, "scale": outputs}, indent=1) + "\n")

    micro, scale = list(micro_rows(runs)), list(scale_rows(outputs))
    text = table(arguments.rounds, arguments.programs, loads, micro, scale)
    print(text)
    if arguments.write:
        write_into_readme(text)
    return 1 if any("missed" in line for line in micro + scale) else 0

if __name__ == "__main__":
    sys.exit(main())
