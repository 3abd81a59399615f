#!/usr/bin/env bash
# `cmake --install` gives an installation that works from anywhere, without the source tree.
set -euo pipefail
build=$1
prefix=$(mktemp -d)
trap 'rm -rf "$prefix"' EXIT
DESTDIR='' cmake --install "$build" --prefix "$prefix" >/dev/null
cd /
unset FSBL_DATA_DIR FSBL_BIN
"$prefix/bin/fsbl" --version
"$prefix/bin/fsbl" list scenarios | grep -q '^fsbl/latency '
"$prefix/bin/fsbl" run smoke/smoke --dry-run | grep -q '"rounds"'
if ! "$prefix/bin/fsbl" doctor | grep -q 'yes  netns'; then
  echo "SKIP: no network namespaces here; the installed programs start, nothing was run"
  exit 77
fi
"$prefix/bin/fsbl" run smoke/smoke --quiet --set transports=plaintext --out "$prefix/out" | grep -q plaintext
test -s "$prefix/out/result.json" && test -s "$prefix/out/FSBL_RESULTS.md"
echo "the installation works"
