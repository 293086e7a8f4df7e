#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same short HTTP answer from bobbin, nginx and Go, in turns, in one table of medians.

    bench/http/compare_http.py [--rounds 3] [--connections 64] [--depth 1] [PROGRAMS]

PROGRAMS is the folder with bobbin_http_server and bobbin_http_load; build/release/bench if not
given. nginx and Go take part where they are installed. The server has CPU 0, the load CPU 1. What
counts is the server's CPU time for each request; requests a second say the same where the server
is busy all the time. Exit code 2: a program is missing.
"""

import argparse
import json
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent

NGINX = """
worker_processes 1;
daemon off;
pid {folder}/nginx.pid;
error_log stderr crit;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  keepalive_requests 1000000000;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  server {{
    listen 127.0.0.1:{port};
    location / {{ default_type text/plain; return 200 "Hello, World!"; }}
  }}
}}
"""

def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]

def await_port(port):
    for _ in range(200):
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.05)
    sys.exit(f"nobody listens on port {port}")

def commands(arguments, folder):
    """How to start each server on a port."""
    server = arguments.programs / "bobbin_http_server"
    found = {"bobbin": lambda port: [server, "--port", port]}
    nginx = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
    if nginx:
        def start_nginx(port):
            config = folder / "nginx.conf"
            config.write_text(NGINX.format(folder=folder, port=port))
            return [nginx, "-p", folder, "-c", config]
        found["nginx"] = start_nginx
    if shutil.which("go"):
        program = folder / "go_server"
        subprocess.run(["go", "build", "-o", program, "."], cwd=HERE / "go", check=True)
        found["Go net/http"] = lambda port: ["env", "GOMAXPROCS=1", program, port]
    return found

def measure(arguments, command):
    port = free_port()
    prefix = ["chrt", "-r", "1"] if arguments.realtime else []
    words = prefix + ["taskset", "-c", "0"] + [str(word) for word in command(port)]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL)
    try:
        await_port(port)
        load = prefix + [
            str(arguments.programs / "bobbin_http_load"), "--port", str(port), "--cpu", "1",
            "--connections", str(arguments.connections), "--depth", str(arguments.depth),
            "--seconds", str(arguments.seconds), "--server-pid", str(server.pid)]
        return json.loads(subprocess.run(load, stdout=subprocess.PIPE, check=True).stdout)
    finally:
        server.terminate()
        server.wait()

def main():
    parser = argparse.ArgumentParser(description="Compares HTTP servers.")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--depth", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--realtime", action="store_true",
                        help="real-time priority for both ends, against other work")
    parser.add_argument("programs", nargs="?", type=Path, metavar="PROGRAMS",
                        default=HERE.parent.parent / "build/release/bench")
    arguments = parser.parse_args()
    for name in ("bobbin_http_server", "bobbin_http_load"):
        if not (arguments.programs / name).exists():
            print(f"{arguments.programs}: no {name} there", file=sys.stderr)
            sys.exit(2)

    with tempfile.TemporaryDirectory() as folder:
        servers = commands(arguments, Path(folder))
        results = {name: [] for name in servers}
        for _ in range(arguments.rounds):
            for name, command in servers.items():
                results[name].append(measure(arguments, command))

    def median(name, what):
        return statistics.median(result[what] for result in results[name])
    own = median("bobbin", "server_cpu_us_per_request")
    print("| server | requests/s | server CPU per request | of bobbin's | p50 | p99 |")
    print("|---|--:|--:|--:|--:|--:|")
    for name in results:
        cpu = median(name, "server_cpu_us_per_request")
        print(f"| {name} | {median(name, 'requests_per_second'):,.0f} | {cpu:.2f} us "
              f"| {cpu / own:.2f} x | {median(name, 'p50_us'):.0f} us "
              f"| {median(name, 'p99_us'):.0f} us |")

if __name__ == "__main__":
    main()
