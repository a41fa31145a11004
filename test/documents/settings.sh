# What the commands of a document find on the reader's machine: functions for `<!-- before: … -->`.

# Waits until a command succeeds.
wait_for() {
  for attempt in $(seq 300); do
    if "$@" >/dev/null 2>&1; then return 0; fi
    sleep 0.1
  done
  echo "not in time: $*"
  return 1
}

answers() { wait_for curl -sf "$1"; }
says_serving() {
  wait_for sh -c "curl -sf http://127.0.0.1:${1:-9090}/metrics | grep -q 'llm_d_epp_ready_endpoints{.*} 2'"
}

# Two simulated model servers, as examples/endpoints.yaml names them.
servers() {
  for port in 8000 8001; do node bin/pointsman.js model-server --port $port --speedup 20 & done
  answers http://127.0.0.1:8000/health
  answers http://127.0.0.1:8001/health
}

# A picker of these servers on the default ports, which has their signals; further flags are its own.
picker() {
  [ -f endpoints.yaml ] || cp examples/endpoints.yaml .
  [ -f picker.yaml ] || cp examples/prefix-and-load.yaml picker.yaml
  servers
  node bin/pointsman.js serve --config-file picker.yaml --secure-serving=false "$@" &
  says_serving
}

# The embedded gateway on 8081.
gateway() {
  node bin/pointsman.js gateway &
  wait_for bash -c '</dev/tcp/127.0.0.1/8081'
}

# Envoy on 8081, its admin page on 19000.
envoy_in_front() {
  cp deploy/envoy/envoy.yaml .
  envoy -c envoy.yaml --log-level warning &
  wait_for sh -c "curl -sf http://127.0.0.1:19000/clusters | grep -q '9002::health_flags::healthy'"
}

# A chat through the gateway; the argument is its x-request-id.
chat() {
  curl -sf http://127.0.0.1:8081/v1/chat/completions -H 'content-type: application/json' -H "x-request-id: $1" \
    -d '{"model":"demo-model","max_tokens":4,"messages":[{"role":"user","content":"Tell me about harbours."}]}'
}
