#!/usr/bin/env bash
# Every shell script of the project passes shellcheck.
set -euo pipefail
cd "$(dirname "$0")/.."
command -v shellcheck >/dev/null || { echo "SKIP: no shellcheck"; exit 77; }
mapfile -t scripts < <(grep -rlE '^#!.*\b(ba)?sh\b' scripts tests .ci)
shellcheck -x "${scripts[@]}"
echo "${#scripts[@]} scripts are clean"
