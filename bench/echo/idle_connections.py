#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what connections at rest cost a server: memory, CPU, and the time of one answer.

usage: idle_connections.py [--connections N] [--processes P] [--backends LIST] [--carriers C]
                           [--stack-bytes B] [FOLDER]

FOLDER holds bobbin_echo_server; build/release/bench if not given. Each connection sends one message
and gets its echo, one after the other, and is then left alone. With the backend `bobbin-http` it is
bobbin_http_server, a request and its answer. Memory is what the server's private memory has grown
by when all are at rest, for each connection; `tables` is its share of the page tables, which are
the kernel's. What else the kernel keeps for a socket is in neither.

A process may have so many descriptors open and no more, so many connections take several servers,
each at a loopback address of its own, and as many clients, which are processes of their own, too:
N is the sum. Then the answers are those of all servers in turn.
"""

import argparse
import multiprocessing
import os
import re
import resource
import signal
import socket
import statistics
import subprocess
import time

class Memory:
    """What processes have: private memory, and page tables for it."""

    def __init__(self, private=0, tables=0):
        self.private, self.tables = private, tables

    def __add__(self, other):
        return Memory(self.private + other.private, self.tables + other.tables)

    def __sub__(self, other):
        return Memory(self.private - other.private, self.tables - other.tables)

def memory_of(pid):
    with open(f"/proc/{pid}/smaps_rollup") as file:
        private = sum(int(n) for n in re.findall(r"^Private_\w+:\s+(\d+) kB", file.read(), re.M))
    with open(f"/proc/{pid}/status") as file:
        tables = int(re.search(r"^VmPTE:\s+(\d+) kB", file.read(), re.M)[1])
    return Memory(private * 1024, tables * 1024)

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

QUESTIONS = {"bobbin-http": (b"GET / HTTP/1.1\r\nHost: here\r\nAccept: */*\r\n\r\n",
                             b"Hello, World!")}

def answer_us(connection, backend):
    question, end = QUESTIONS.get(backend, (b"ping", b"ping"))
    begin = time.perf_counter_ns()
    connection.sendall(question)
    if not connection.recv(4096).endswith(end):
        raise SystemExit("idle_connections.py: a wrong answer")
    return (time.perf_counter_ns() - begin) / 1000

def command(folder, backend, host, options):
    carriers = options.carriers if backend.startswith("bobbin") else 1
    program = "bobbin_http_server" if backend == "bobbin-http" else "bobbin_echo_server"
    kind = [] if backend == "bobbin-http" else [f"--backend={backend}"]
    return [os.path.join(folder, program), *kind, f"--host={host}", f"--carriers={carriers}",
            f"--stack-bytes={options.stack_bytes}"]

class Server:
    """A server, and one connection to it."""

    def __init__(self, backend, host, options):
        self.process = subprocess.Popen(command(options.folder, backend, host, options),
                                        stdout=subprocess.PIPE, text=True)
        self.address = (host, int(self.process.stdout.readline().rsplit(":", 1)[1]))
        self.first = socket.create_connection(self.address)
        self.alone = statistics.median(answer_us(self.first, backend) for _ in range(1000))
        self.memory = self.memory_now()

    def memory_now(self):
        return memory_of(self.process.pid)

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.communicate()

class Client:
    """A process that holds connections to one server, and asks over them when it is told to."""

    def __init__(self, backend, address, connections):
        self.pipe, end = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=Client.serve,
                                               args=(backend, address, connections, end))
        self.process.start()

    @staticmethod
    def serve(backend, address, connections, pipe):
        opened = []
        for _ in range(connections):
            opened.append(socket.create_connection(address))
            answer_us(opened[-1], backend)
        pipe.send(connections)
        while (count := pipe.recv()) != 0:
            pipe.send([answer_us(opened[i * 7919 % connections], backend) for i in range(count)])

    def await_opened(self):
        return self.pipe.recv()

    def answers(self, count):
        self.pipe.send(count)
        return self.pipe.recv()

    def stop(self):
        self.pipe.send(0)
        self.process.join()

def measure(backend, options):
    hosts = [f"127.0.0.{i + 1}" for i in range(options.processes)]
    each = options.connections // options.processes
    servers, clients = [], []
    try:
        servers = [Server(backend, host, options) for host in hosts]
        clients = [Client(backend, server.address, each) for server in servers]
        opened = sum(client.await_opened() for client in clients)
        time.sleep(3)  # Until the last of them are at rest.
        grown = sum((server.memory_now() - server.memory for server in servers), Memory())
        pids = [server.process.pid for server in servers]
        cpu, slept = sum(map(cpu_seconds, pids)), sum(map(switches, pids))
        time.sleep(options.seconds)
        cpu = (sum(map(cpu_seconds, pids)) - cpu) / options.seconds
        slept = (sum(map(switches, pids)) - slept) / options.seconds
        among = [us for client in clients for us in client.answers(1000 // options.processes)]
        alone = statistics.median(server.alone for server in servers)
        print(f"{backend:14} {opened:11,} {grown.private / opened:9,.0f} B"
              f" {grown.tables / opened:6,.0f} B {cpu:8.3f} {slept:10.1f}"
              f" {alone:10.1f} {statistics.median(among):10.1f} {sorted(among)[-10]:10.1f}")
    finally:
        for client in clients:
            client.stop()
        for server in servers:
            server.stop()

def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("folder", nargs="?", default="build/release/bench")
    parser.add_argument("--connections", type=int, default=18000)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--backends", default="raw-uring bobbin bobbin-pooled bobbin-epoll")
    parser.add_argument("--carriers", type=int, default=1)
    parser.add_argument("--stack-bytes", type=int, default=256 << 10)
    parser.add_argument("--seconds", type=float, default=2)
    options = parser.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    print(f"{'backend':14} {'connections':>11} {'memory':>11} {'tables':>8} {'CPU':>8}"
          f" {'sleeps/s':>10} {'alone us':>10} {'among us':>10} {'p99':>10}")
    for backend in options.backends.split():
        measure(backend, options)

if __name__ == "__main__":
    main()
