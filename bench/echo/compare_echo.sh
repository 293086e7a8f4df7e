#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Measures the echo servers against each other and prints a table of medians.
#
# The backends take turns within each round, so that a machine that gets slower meanwhile gets
# slower for all of them. Server and load generator have a CPU each. Figures of single runs mean
# little, ratios within one table mean more, and those of a busy machine nothing: runs in which the
# load generator or, with many connections, the server did not have its CPU to itself are counted
# below the table, and left out of the medians where there are others.

set -euo pipefail

bin_dir=build/release/bench
what=${BOBBIN_ECHO_WHAT:-echo}
all_backends="raw-uring raw-multishot raw-epoll bobbin bobbin-pooled bobbin-epoll"
backends=${BOBBIN_ECHO_BACKENDS:-$all_backends}
connections=${BOBBIN_ECHO_CONNECTIONS:-1 64 1000}
depth=${BOBBIN_ECHO_DEPTH:-1}
bytes=${BOBBIN_ECHO_BYTES:-64}
rounds=${BOBBIN_ECHO_ROUNDS:-3}
seconds=${BOBBIN_ECHO_SECONDS:-3}
warmup=${BOBBIN_ECHO_WARMUP:-1}
carriers=${BOBBIN_ECHO_CARRIERS:-1}
server_cpu=${BOBBIN_ECHO_SERVER_CPU:-0}
load_cpu=${BOBBIN_ECHO_LOAD_CPU:-1}

usage() {
  cat <<END
usage: compare_echo.sh [options] [FOLDER]

FOLDER holds bobbin_echo_server, bobbin_echo_load and bobbin_accept_load; $bin_dir if not given.

  --what WHAT          default $what; accepts: connections made and reset, instead of messages
  --backends LIST      default "$backends"; ratios are to the first one
  --connections LIST   default "$connections"; up to 10000 where 10100 files may be open
  --depth N            messages in flight on each connection, default $depth
  --bytes N            bytes of a message, default $bytes
  --rounds N           default $rounds
  --seconds S          measured in each run, default $seconds
  --warmup S           before that, default $warmup
  --carriers N         of the bobbin backends, default $carriers
  --server-cpu C       default $server_cpu
  --load-cpu C         default $load_cpu

Each option has a variable, such as BOBBIN_ECHO_CONNECTIONS="64 10000".
END
}

refuse() {
  echo "compare_echo.sh: $*" >&2
  exit 2
}

while (($# > 0)); do
  case $1 in
    -h | --help)
      usage
      exit 0
      ;;
    --what | --backends | --connections | --depth | --bytes | --rounds | --seconds | --warmup | \
      --carriers | --server-cpu | --load-cpu)
      (($# > 1)) || refuse "$1 needs a value"
      name=${1#--}
      printf -v "${name//-/_}" '%s' "$2"
      shift 2
      ;;
    -*) refuse "unknown option $1" ;;
    *)
      bin_dir=$1
      shift
      ;;
  esac
done
server=$bin_dir/bobbin_echo_server
load=$bin_dir/bobbin_echo_load
accept_load=$bin_dir/bobbin_accept_load
[[ $rounds =~ ^[1-9][0-9]*$ ]] || refuse "rounds $rounds: must be a number, at least 1"
[[ $what == echo || $what == accepts ]] || refuse "what $what: must be echo or accepts"
[[ -x $server && -x $load && -x $accept_load ]] ||
  refuse "$bin_dir: no bobbin_echo_server, bobbin_echo_load and bobbin_accept_load there"
[[ $what == echo ]] || connections=1

scratch=$(mktemp -d)
server_pid=
finish() {
  [[ -z $server_pid ]] || kill -KILL "$server_pid" 2>/dev/null || true
  rm -rf "$scratch"
}
trap finish EXIT

fail() {
  echo "compare_echo.sh: $*" >&2
  cat "$scratch/errors" >&2
  exit 1
}

# Prints the number that KEY has in the JSON object on standard input.
field() { sed -n "s/.*\"$1\":\([-0-9.e+]*\).*/\1/p"; }

# Waits until the server has said where it listens, and prints the port.
listening_port() {
  local port
  for _ in {1..200}; do
    port=$(sed -n 's/^listening .*:\([0-9]*\)$/\1/p' "$scratch/server")
    if [[ -n $port ]]; then
      echo "$port"
      return
    fi
    kill -0 "$server_pid" 2>/dev/null || return 1
    sleep 0.05
  done
  return 1
}

# Loads the server at PORT, prints the figures.
run_load() {
  local load_options=(--port "$1" --seconds "$seconds" --warmup "$warmup" --cpu "$load_cpu")
  if [[ $what == accepts ]]; then
    "$accept_load" "${load_options[@]}"
  else
    "$load" "${load_options[@]}" --connections "$2" --depth "$depth" --bytes "$bytes" --json
  fi
}

# One run: starts BACKEND, loads it with COUNT connections, adds a line to the samples.
measure() {
  local backend=$1 count=$2 run="$1, $2 connections" port result report carriers_here=1
  [[ $backend != bobbin* ]] || carriers_here=$carriers
  : >"$scratch/errors"
  : >"$scratch/server"  # Before the server starts: the last one's port must not be found there.
  "$server" --backend="$backend" --cpu "$server_cpu" --carriers "$carriers_here" \
    >"$scratch/server" 2>>"$scratch/errors" &
  server_pid=$!
  port=$(listening_port) || fail "$run: the server does not listen"
  result=$(run_load "$port" "$count" 2>>"$scratch/errors") ||
    fail "$run: the load generator failed"
  kill -TERM "$server_pid"
  wait "$server_pid" || fail "$run: the server failed"
  server_pid=
  report=$(sed -n '$p' "$scratch/server")
  if [[ $what == accepts ]]; then
    echo "$count $backend $(field accepts_per_second <<<"$result") 0 0 0" \
      "$(field cpu_us_per_accept <<<"$report") 0 $(field client_cpu_share <<<"$result")" \
      >>"$scratch/samples"
    return
  fi

  # With several messages in flight, one receive brings several: CPU is charged by message.
  echo "$count $backend" \
    "$(field requests_per_second <<<"$result") $(field p50_us <<<"$result")" \
    "$(field p99_us <<<"$result") $(field first_second_p99_us <<<"$result")" \
    "$(field client_cpu_share <<<"$result")" \
    "$(field cpu_us_per_request <<<"$report") $(field requests <<<"$report")" \
    "$(field bytes <<<"$report") $(field resident_bytes_per_connection <<<"$report")" |
    awk -v size="$bytes" '{
      cpu = $8; if ($10 > 0) cpu = $8 * $9 * size / $10
      print $1, $2, $3, $4, $5, $6, cpu, $11, $7
    }' >>"$scratch/samples"
}

# Marks the samples that were disturbed, in column 10. With many connections a server is never
# without work, and its CPU time is the real time.
mark_disturbed() {
  awk '{
    is_disturbed = $9 < 0.95 || ($1 >= 64 && $3 * $7 < 0.93e6)
    print $0, is_disturbed
  }' "$scratch/samples" >"$scratch/marked"
}

# Prints the median of column COLUMN among the samples of BACKEND with COUNT connections.
median() {
  awk -v count="$1" -v backend="$2" -v column="$3" '
    $1 == count && $2 == backend {
      if ($10) disturbed[++m] = $column; else calm[++n] = $column
    }
    END {
      for (i = 1; i <= n; ++i) print calm[i]
      if (n == 0) for (i = 1; i <= m; ++i) print disturbed[i]
    }' "$scratch/marked" | sort -g |
    awk '{ value[NR] = $1 } END { print (value[int((NR + 1) / 2)] + value[int(NR / 2) + 1]) / 2 }'
}

ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (b > 0) printf "%.3f", a / b; else print "-" }'; }

for ((round = 1; round <= rounds; ++round)); do
  for count in $connections; do
    for backend in $backends; do
      [[ ! -t 2 ]] || printf '\r\033[Kround %d of %d: %s, %s connections' \
        "$round" "$rounds" "$backend" "$count" >&2
      measure "$backend" "$count"
    done
  done
done
[[ ! -t 2 ]] || printf '\r\033[K' >&2

mark_disturbed
first=${backends%% *}
subject="echo of $bytes bytes, depth $depth"
unit=requests
if [[ $what == accepts ]]; then
  subject="accepts"
  unit=accepts
fi
echo "$subject, medians of $rounds rounds of $seconds s," \
  "server on cpu $server_cpu, load on cpu $load_cpu"
format='%11s  %-12s %11s %8s %10s %10s %13s %14s %10s\n'
# shellcheck disable=SC2059
printf "$format" connections backend $unit/s ratio 'p50 us' 'p99 us' 'p99 first s' \
  "CPU us/${unit%s}" 'B/conn'
for count in $connections; do
  base=$(median "$count" "$first" 3)
  for backend in $backends; do
    rate=$(median "$count" "$backend" 3)
    # shellcheck disable=SC2059
    printf "$format" "$count" "$backend" "$(printf '%.0f' "$rate")" \
      "$(ratio "$rate" "$base")" \
      "$(printf '%.1f' "$(median "$count" "$backend" 4)")" \
      "$(printf '%.1f' "$(median "$count" "$backend" 5)")" \
      "$(printf '%.1f' "$(median "$count" "$backend" 6)")" \
      "$(printf '%.2f' "$(median "$count" "$backend" 7)")" \
      "$(printf '%.0f' "$(median "$count" "$backend" 8)")"
  done
done
awk '$10 { ++disturbed } END {
  if (disturbed > 0) printf "%d of %d runs were disturbed: less than their CPU\n", disturbed, NR
}' "$scratch/marked"
