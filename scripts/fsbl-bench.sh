#!/usr/bin/env bash
# fsbl-bench.sh: reproducible latency and throughput of zero-trust transports, under the name and the variables of the
# source document's script. One interleaved run; every transport over its own tunnel, every path proved.
set -euo pipefail
# shellcheck source-path=SCRIPTDIR source=build.sh
. "$(dirname "$0")/build.sh"

usage() {
  cat <<'TEXT'
usage: [VARIABLE=value ...] scripts/fsbl-bench.sh [--yes | --no-install]

  DURATION      seconds of a measuring window          120
  WARMUP        seconds before it                       30
  PAYLOAD       bytes of a request, and of a write   65536
  STREAMS       streams of the throughput rounds        10
  REPETITIONS   rounds of each kind                      5
  TRANSPORTS    names, as in `fsbl list transports`    all

Writes FSBL_RESULTS.md to the current folder; the result that it is made from lies in results/. The embedded testbed
makes its own link and addresses, so SERVER_IP, CLIENT_IP and NIC are refused.

exit codes: 0 done · 2 bad usage · 4 packages missing, or nothing can run here · 5 build or run failed · 130 cancelled
TEXT
}

die() {
  echo "fsbl-bench.sh: $1" >&2
  exit 2
}

setup=()
for option in "$@"; do
  case $option in
    -h | --help) usage; exit 0 ;;
    --yes | --no-install) setup+=("$option") ;;
    *) usage >&2; die "unknown option $option: see above" ;;
  esac
done

for name in SERVER_IP CLIENT_IP NIC; do
  [ -z "${!name:-}" ] || die "$name is set: the embedded testbed uses its own addresses and link; unset it (the ssh testbed will take it)"
done
DURATION=${DURATION:-120} WARMUP=${WARMUP:-30} PAYLOAD=${PAYLOAD:-65536} STREAMS=${STREAMS:-10} REPETITIONS=${REPETITIONS:-5}
TRANSPORTS=${TRANSPORTS:-plaintext wireguard wireguard-go wireguard-gpu mtls mtls-ktls mtls-dpdk mtls-cuda}
for name in DURATION PAYLOAD STREAMS REPETITIONS; do
  [[ ${!name} =~ ^[1-9][0-9]{0,11}$ ]] || die "$name=${!name}: not a whole number above 0; give one"
done
[[ $WARMUP =~ ^[0-9]{1,11}$ ]] || die "WARMUP=$WARMUP: not a whole number of seconds; give one"
read -r -a transports <<<"${TRANSPORTS//,/ }"
[ ${#transports[@]} -gt 0 ] || die "TRANSPORTS=$TRANSPORTS: names nothing; give names from \`fsbl list transports\`"
for name in "${transports[@]}"; do
  [[ $name =~ ^[a-z0-9-]+$ ]] || die "TRANSPORTS: $name is not a name; see \`fsbl list transports\`"
done
names=$(IFS=,; echo "${transports[*]}")

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"; hand_back "$top/build" results FSBL_RESULTS.md' EXIT
build_suite "${setup[@]}"

# scenario NAME LOAD: one of the two parts of the run.
scenario() {
  cat >"$scratch/$1.yaml" <<YAML
id: fsbl-bench/$1
title: fsbl-bench.sh, $1
seed: 1
repetitions: $REPETITIONS
transports: [$names]
load: {$2}
phases: {warm_up: ${WARMUP}s, measure: ${DURATION}s, cool_down: 1s}
YAML
}
scenario latency "shape: request-response, payload: ${PAYLOAD}B, reply: 64B, streams: 1"
scenario throughput "shape: stream, direction: up, payload: ${PAYLOAD}B, streams: $STREAMS"

status=0
"$fsbl" run "$scratch/latency.yaml" "$scratch/throughput.yaml" || status=$?
if [ results/latest/result.json -nt "$scratch/throughput.yaml" ]; then  # finished rounds are kept when a later one failed
  PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$top/reports /usr/bin/python3 -m fsbl_reports results/latest --format md --out . >&2 || status=5
fi
exit "$status"
