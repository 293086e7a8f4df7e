#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# shop_test.sh COMMAND...: starts the shop, orders something, and follows the order to its receipt;
# then has it stop while requests run. It waits for states; how long all may take, ctest says.

set -euo pipefail

folder=$(mktemp -d)
pid=
cleanup() {
  [[ -z $pid ]] || kill -9 "$pid" 2>/dev/null || true
  rm -rf "$folder"
}
trap cleanup EXIT
cd "$folder"

fail() {
  echo "shop_test: $*" >&2
  cat errors log >&2 || true
  exit 1
}

# await COMMAND...: until it succeeds, as long as the shop runs.
await() {
  until "$@"; do
    kill -0 "$pid" 2>/dev/null || fail "the shop has gone, waiting for: $*"
    sleep 0.05
  done
}

# Whatever the environment says of other programs is not meant.
env -u http_proxy -u BOBBIN_PROFILE \
  SHOP_LISTEN=127.0.0.1:0 SHOP_MANAGEMENT_LISTEN=127.0.0.1:0 \
  SHOP_DATABASE="$folder/orders.db" SHOP_TELEMETRY_FILE="$folder/log" \
  SHOP_CHECK_EVERY=100ms BOBBIN_SHUTDOWN_BUDGET=1000s "$@" >address 2>errors &
pid=$!
await test -s address
url=$(cat address)

ask() { curl --silent --show-error --noproxy '*' "$@"; }
says() { [[ $(ask "$url$1") == *"$2"* ]]; }
logged() { grep --quiet --fixed-strings -- "$1" log; }
order() { ask --output answer --write-out '%{http_code}' "$url/orders" "$@"; }

# An order, its receipt, and both in one trace.
says /health up || fail "it is not healthy"
await logged '"text":"management"'
management=$(sed -n 's/.*"text":"management".*"address":"\([^"]*\)".*/\1/p' log)
[[ $(ask "http://$management/health") == *'live: yes'* ]] || fail "it cannot be looked into"
trace=0af7651916cd43dd8448eb211c80319c
code=$(order --header "traceparent: 00-$trace-b7ad6b7169203331-01" \
  --data '{"item": "tea", "customer": "ada@example.org"}')
[[ $code == 201 ]] || fail "the order was answered $code: $(cat answer)"
[[ $(cat answer) == '{"id":1,"item":"tea",'* ]] || fail "the answer is $(cat answer)"
says /metrics 'shop_orders_total 1' || fail "the order is not counted"
says /metrics 'http_response_status_code="201",http_route="/orders"} 1' ||
  fail "the request is not counted: $(ask "$url/metrics" | grep request_duration_count)"
await says /mails "Traceparent: 00-$trace-"
says /mails 'Thank you for ordering: tea' || fail "the receipt is $(ask "$url/mails")"
await says /orders/1 '"has_receipt":true'
await says /metrics 'shop_receipts_total 1'
await says /metrics 'bobbin_task_completed_total{bobbin_executor="mail"} 1'
for span in 'POST /orders' receipt 'send mail'; do
  await logged "\"name\":\"$span\",\"trace\":\"$trace\""
done
await logged '"text":"orders without a receipt"'

# What is wrong is refused.
for wrong in '{"item": 1}' 'tea' '' '{"item": "tea", "customer": "a> b@example.org"}'; do
  code=$(order --data "$wrong")
  [[ $code == 400 ]] || fail "'$wrong' was answered $code"
done

# Three orders on their way when it is told to stop: their bodies come later.
clients=()
bodies=()
for i in 0 1 2; do
  mkfifo "body$i"
  exec {body}<>"body$i"
  bodies[i]=$body
  (
    exec <"body$i"
    # Who has a body open for writing keeps it from its end.
    for other in "${bodies[@]}"; do exec {other}>&-; done
    exec curl --silent --noproxy '*' --output "answer$i" --write-out '%{http_code}' \
      --request POST --upload-file - --header 'Expect:' \
      --header "traceparent: 00-$trace-b7ad6b716920333$i-01" "$url/orders" >"code$i"
  ) &
  clients+=($!)
done
await says /metrics 'http_server_active_requests 4'  # And the one that asks.
kill -TERM "$pid"
refuses() { ! ask --output /dev/null "$url/health" 2>/dev/null; }
await refuses
for i in 0 1 2; do
  body=${bodies[i]}
  echo "{\"item\": \"cup $i\", \"customer\": \"ada@example.org\"}" >&"$body"
  exec {body}>&-
done
for i in 0 1 2; do
  wait "${clients[i]}" || fail "client $i has failed: $?"
  [[ $(cat "code$i") == 201 ]] || fail "order $i was answered $(cat "code$i" "answer$i")"
done

# It ends well, and all four receipts were sent, each in its order's trace.
code=0
wait "$pid" || code=$?
pid=
((code == 0)) || fail "it ended with $code"
[[ ! -s errors ]] || fail "it has something to say"
for phase in 'phase 2, scheduler: 1 of 1' 'phase 3, servers: 1 of 1' 'phase 6, resources: 2'; do
  logged "\"text\":\"stop: $phase" || fail "there was no $phase"
done
received=$(grep '"text":"mail received"' log | grep --count --fixed-strings "00-$trace-") || true
[[ $received == 4 ]] || fail "$received receipts were sent for their requests"
echo "shop_test: all is well"
