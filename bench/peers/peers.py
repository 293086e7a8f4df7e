#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same small benchmarks on bobbin and on others, in turns, in one table of medians.

    bench/peers/peers.py [--rounds 3] [--programs build/release/bench] [FILTER]

FILTER is a regular expression for names of benchmarks. Each figure is the time of one operation;
in brackets, how many times bobbin's, of the same round. All but those that end in /2, and
Mutex/64Threads, have one OS thread; those have two. Those with PostgreSQL ask one server, which is
started for them, by 8 connections: bobbin and Go from 64 threads, Go by pgx, OS threads from 8 by
libpq, which blocks. Exit code 2: wrong options, or a program that does not run.
"""

import argparse
import atexit
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

PEERS = {
    "Go": ["bobbin_peer_go", "bobbin_peer_pgx"],
    "Boost.Fiber": ["bobbin_peer_boost_fiber"],
    "OS threads": ["bobbin_peer_os_threads"],
}

# Of bobbin_bench, those that others have, too.
BENCHMARKS = [
    "Yield/2", "Yield/10000", "Semaphore/PingPong", "Channel/PingPong", "SpawnJoin/Sequential",
    "SpawnJoin/Batch1000", "SpawnJoin/Batch1000/2", "Mutex/Uncontended", "Mutex/64Threads",
    "Mutex/64ThreadsYieldInside",
]

# Of bobbin_scale: carriers. The first round of several meets cold memory, as the peers' only does.
TREES = {"Skynet/1000000": 1, "Skynet/1000000/2": 2}

# With a server, and what bobbin_bench calls the same with libpq.
DATABASE = {
    "Postgres/VirtualThreads/OneRow": "Postgres/OsThreads/OneRow",
    "Postgres/VirtualThreads/TenRows": "Postgres/OsThreads/TenRows",
}

# Who takes longer is not waited for. Some peers need minutes for a tree.
PATIENCE_S = 20

def parse_arguments():
    root = Path(__file__).resolve().parent.parent.parent
    parser = argparse.ArgumentParser(description="Compares bobbin with others.")
    parser.add_argument("--rounds", type=int, default=3, help="default: %(default)s")
    parser.add_argument("--programs", type=Path, default=root / "build/release/bench",
                        metavar="FOLDER", help="where bobbin_bench and bobbin_scale are")
    parser.add_argument("filter", nargs="?", default="", metavar="FILTER",
                        help="a regular expression: only benchmarks whose names match")
    arguments = parser.parse_args()
    if arguments.rounds < 1:
        parser.error("--rounds: at least 1")
    try:
        arguments.filter = re.compile(arguments.filter)
    except re.error as error:
        parser.error(f"FILTER: {error}")
    return arguments

def output_of(command, patience=None):
    """What the command prints, or None if it takes too long."""
    try:
        return subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, check=True,
                              timeout=patience).stdout
    except subprocess.TimeoutExpired:
        return None
    except subprocess.CalledProcessError as error:
        print(f"peers.py: {command[0]} failed: {error.stderr.strip()}", file=sys.stderr)
    except OSError as error:
        print(f"peers.py: {command[0]}: {error}", file=sys.stderr)
    sys.exit(2)

def start_server():
    """One PostgreSQL for all, which ends with this program."""
    script = Path(__file__).resolve().parent.parent.parent / "tests/services/postgres_service"
    folder = tempfile.mkdtemp(prefix="bobbin-peers-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    output_of([script, "start", folder])
    atexit.register(output_of, [script, "stop", folder])
    os.environ["BOBBIN_BENCH_POSTGRES"] = Path(folder, "conninfo").read_text().strip()

def show(progress):
    """On a terminal, over and over in one line."""
    if sys.stderr.isatty():
        print(f"\r\033[K{progress}", end="", file=sys.stderr, flush=True)

def time_of_bobbin(programs, name):
    """Nanoseconds an operation."""
    if name in TREES:
        text = output_of([programs / "bobbin_scale", "skynet", "--threads", "1000000",
                          "--carriers", TREES[name], "--rounds", "1", "--json"])
        return json.loads(text)["wall_ms"][0]  # A million leaves: a millisecond is a nanosecond.
    text = output_of([programs / "bobbin_bench", f"--benchmark_filter=^{re.escape(name)}(/|$)",
                      "--benchmark_min_time=0.2", "--benchmark_format=json"])
    entry = json.loads(text)["benchmarks"][0]
    if name.startswith("Postgres/"):  # An iteration has many statements.
        return 1e9 / entry["items_per_second"]
    return entry["real_time"] * {"ns": 1, "us": 1e3, "ms": 1e6}[entry["time_unit"]]

def measure(arguments, names):
    """{name: {peer: [(nanoseconds, ratio), ...]}}; None for who took too long."""
    offers = {(peer, name): arguments.programs / program
              for peer, programs in PEERS.items() for program in programs
              for name in output_of([arguments.programs / program, "--list"]).split()}

    def time_of(peer, name):
        """Nanoseconds an operation; None if that takes too long."""
        if peer == "OS threads" and name in DATABASE:
            return time_of_bobbin(arguments.programs, DATABASE[name])
        text = output_of([offers[peer, name], name], PATIENCE_S)
        return None if text is None else float(text)

    figures = {name: {} for name in names}
    for i in range(arguments.rounds):
        for name in names:
            show(f"round {i + 1} of {arguments.rounds}: {name}")
            own = time_of_bobbin(arguments.programs, name)
            figures[name].setdefault("bobbin", []).append((own, 1))
            for peer in PEERS:
                has_it = (peer, name) in offers or peer == "OS threads" and name in DATABASE
                if not has_it or figures[name].get(peer, [0])[-1] is None:
                    continue
                time = time_of(peer, name)
                figures[name].setdefault(peer, []).append(time and (time, time / own))
    show("")
    return figures

def number(value):
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"

def cell(figures, name, peer):
    values = figures[name].get(peer)
    if values is None:
        return ""
    if None in values:
        return f"> {PATIENCE_S} s"
    time = number(statistics.median(value for value, _ in values))
    if peer == "bobbin":
        return time
    ratio = statistics.median(ratio for _, ratio in values)
    return f"{time} ({f'{ratio:,.0f}' if ratio >= 10 else f'{ratio:.2g}'} x)"

def main():
    arguments = parse_arguments()
    names = [name for name in [*BENCHMARKS, *TREES, *DATABASE] if arguments.filter.search(name)]
    if not names:
        print("peers.py: no benchmark has such a name", file=sys.stderr)
        return 2
    if any(name in DATABASE for name in names):
        start_server()
    figures = measure(arguments, names)
    runtimes = ["bobbin", *PEERS]
    rows = [["ns", *runtimes], ["---", *["--:"] * len(runtimes)]]
    rows += [[f"`{name}`", *(cell(figures, name, peer) for peer in runtimes)] for name in names]
    for row in rows:
        print("| " + " | ".join(row) + " |")
    return 0

if __name__ == "__main__":
    sys.exit(main())
