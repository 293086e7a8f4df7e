#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares two measurements: has anything become slower, relative to its baseline?

    bench/compare.py OLD.json NEW.json [--limit 1.15]

The files are what bench/measure.py --json writes, or what bobbin_bench prints with
--benchmark_format=json. Exit code 1: a ratio has grown by more than the limit; 2: wrong options.
"""

import argparse
import sys

import figures

def parse_arguments():
    parser = argparse.ArgumentParser(
        description="Compares two measurements by the ratios of benchmarks to their baselines.")
    parser.add_argument("old", metavar="OLD.json")
    parser.add_argument("new", metavar="NEW.json")
    parser.add_argument("--limit", type=float, default=1.15, metavar="FACTOR",
                        help="by how much a ratio may grow; default: %(default)s")
    return parser.parse_args()

def refuse(why):
    print(f"compare.py: {why}", file=sys.stderr)
    sys.exit(2)

def load_ratios(path):
    try:
        ratios = figures.ratios_of(figures.load_runs(path))
    except (OSError, ValueError, KeyError, TypeError) as error:
        refuse(f"{path}: not a measurement: {error}")
    if not ratios:
        refuse(f"{path}: no benchmark together with its baseline")
    return ratios

def main():
    arguments = parse_arguments()
    old, new = load_ratios(arguments.old), load_ratios(arguments.new)

    slower = []
    print(f"{'benchmark':32} {'baseline':28} {'old':>8} {'new':>8} {'change':>8}")
    for name, (baseline, _) in figures.BASELINES.items():
        if name not in old or name not in new:
            continue
        change = new[name] / old[name]
        is_slower = change > arguments.limit
        if is_slower:
            slower.append(name)
        print(f"{name:32} {baseline:28} {old[name]:8.2f} {new[name]:8.2f} {change:7.2f}x"
              f"{'  slower' if is_slower else ''}")

    missing = sorted(old.keys() - new.keys())
    if missing:
        print(f"compare.py: missing in {arguments.new}: {', '.join(missing)}", file=sys.stderr)
    return 1 if slower or missing else 0

if __name__ == "__main__":
    sys.exit(main())
