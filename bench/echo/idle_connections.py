#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what connections at rest cost an echo server: memory, CPU, and the time of one answer.

usage: idle_connections.py [--connections N] [--backends LIST] [--carriers C]
                           [--stack-bytes B] [FOLDER]

FOLDER holds bobbin_echo_server; build/release/bench if not given. Each connection sends one message
and gets its echo, one after the other, and is then left alone. Memory is what the server's private
memory and page tables have grown by, for each connection; the kernel's part is not in it.
"""

import argparse
import os
import re
import resource
import signal
import socket
import statistics
import subprocess
import time

def memory_bytes(pid):
    """Private memory and page tables."""
    with open(f"/proc/{pid}/smaps_rollup") as file:
        private = sum(int(n) for n in re.findall(r"^Private_\w+:\s+(\d+) kB", file.read(), re.M))
    with open(f"/proc/{pid}/status") as file:
        tables = int(re.search(r"^VmPTE:\s+(\d+) kB", file.read(), re.M)[1])
    return (private + tables) * 1024

def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

def switches(pid):
    """How often the server's threads have slept."""
    count = 0
    for thread in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{thread}/status") as file:
            count += int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", file.read(), re.M)[1])
    return count

def answer_us(connection):
    begin = time.perf_counter_ns()
    connection.sendall(b"ping")
    if connection.recv(4) != b"ping":
        raise SystemExit("idle_connections.py: a wrong answer")
    return (time.perf_counter_ns() - begin) / 1000

def measure(server, backend, options):
    carriers = options.carriers if backend.startswith("bobbin") else 1
    process = subprocess.Popen(
        [server, f"--backend={backend}", f"--carriers={carriers}",
         f"--stack-bytes={options.stack_bytes}"], stdout=subprocess.PIPE, text=True)
    try:
        port = int(process.stdout.readline().rsplit(":", 1)[1])
        first = socket.create_connection(("127.0.0.1", port))
        alone = statistics.median(answer_us(first) for _ in range(1000))
        before = memory_bytes(process.pid)
        rest = []
        for _ in range(options.connections):
            connection = socket.create_connection(("127.0.0.1", port))
            answer_us(connection)
            rest.append(connection)
        memory = (memory_bytes(process.pid) - before) / options.connections
        time.sleep(3)  # Until the last of them are at rest.
        cpu, slept = cpu_seconds(process.pid), switches(process.pid)
        time.sleep(options.seconds)
        cpu = (cpu_seconds(process.pid) - cpu) / options.seconds
        slept = (switches(process.pid) - slept) / options.seconds
        among = statistics.median(answer_us(rest[i * 7919 % len(rest)]) for i in range(1000))
        print(f"{backend:14} {options.connections:11,} {memory:9,.0f} B {cpu:8.3f} {slept:10.1f}"
              f" {alone:10.1f} {among:10.1f}")
        for connection in rest:
            connection.close()
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()

def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", nargs="?", default="build/release/bench")
    parser.add_argument("--connections", type=int, default=18000)
    parser.add_argument("--backends", default="raw-uring bobbin bobbin-pooled bobbin-epoll")
    parser.add_argument("--carriers", type=int, default=1)
    parser.add_argument("--stack-bytes", type=int, default=256 << 10)
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print(f"{'backend':14} {'connections':>11} {'memory':>11} {'CPU':>8} {'sleeps/s':>10}"
          f" {'alone us':>10} {'among us':>10}")
    for backend in options.backends.split():
        measure(os.path.join(options.folder, "bobbin_echo_server"), backend, options)

if __name__ == "__main__":
    main()
